/** Where Spark looks for the source of format "lance". */
package lance;
