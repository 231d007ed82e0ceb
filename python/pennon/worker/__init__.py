"""The process beside the JVM: messages and data plane; no rule about partitions."""
