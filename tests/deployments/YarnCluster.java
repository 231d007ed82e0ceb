package tests;

import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.MiniYARNCluster;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.ResourceScheduler;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.fifo.FifoScheduler;

/** YARN in one process: writes its settings into a folder and runs until its input ends. */
public final class YarnCluster {
  private YarnCluster() {}

  public static void main(String[] words) throws Exception {
    YarnConfiguration conf = new YarnConfiguration();
    conf.set("fs.defaultFS", "file:///");
    // The default one wants its queues in a file.
    conf.setClass(YarnConfiguration.RM_SCHEDULER, FifoScheduler.class, ResourceScheduler.class);
    conf.setInt(YarnConfiguration.RM_SCHEDULER_MINIMUM_ALLOCATION_MB, 256);
    conf.setInt(YarnConfiguration.YARN_MINICLUSTER_NM_PMEM_MB, 6144);
    conf.setInt(YarnConfiguration.NM_VCORES, 4);
    // A container whose processes together take more than it asked for is ended.
    conf.setBoolean(YarnConfiguration.NM_PMEM_CHECK_ENABLED, true);
    conf.setBoolean(YarnConfiguration.NM_VMEM_CHECK_ENABLED, false);
    conf.setInt(YarnConfiguration.NM_CONTAINER_MON_INTERVAL_MS, 500);
    // Small disks and full ones are no reason to stop here.
    conf.setFloat(YarnConfiguration.NM_MAX_PER_DISK_UTILIZATION_PERCENTAGE, 100f);
    conf.setInt(YarnConfiguration.DEBUG_NM_DELETE_DELAY_SEC, 600);
    try (MiniYARNCluster cluster = new MiniYARNCluster("pennon", 1, 1, 1)) {
      cluster.init(conf);
      cluster.start();
      Path written = Path.of(words[0], "writing");
      try (OutputStream output = Files.newOutputStream(written)) {
        cluster.getConfig().writeXml(output);
      }
      Files.copy(written, Path.of(words[0], "core-site.xml"));
      Files.move(written, Path.of(words[0], "yarn-site.xml"));
      while (System.in.read() >= 0) {
        continue;
      }
    } catch (Exception | LinkageError e) {
      e.printStackTrace();
    }
    // Some of its threads live on.
    System.exit(0);
  }
}
