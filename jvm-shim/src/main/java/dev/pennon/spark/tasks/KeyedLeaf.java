package dev.pennon.spark.tasks;

import dev.pennon.spark.worker.SecretText;

/**
 * One leaf under one derived key, as the worker assigned it. A leaf may stand under several keys, and
 * a key without a leaf.
 *
 * @param leaf the leaf's position among the scan's splits; negative where there is nothing to read
 *     under the key, which then has no other row
 * @param split what replaces the leaf's own split where only a part of it is read; else null
 */
public record KeyedLeaf(long key, int leaf, SecretText split) {}
