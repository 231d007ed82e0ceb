-- The best texts, over one partition or all of them; and texts and vectors together.

DROP NAMESPACE IF EXISTS lance.example11 CASCADE;
CREATE NAMESPACE lance.example11;

-- Of the library of Python: what some of its modules say of themselves.
CREATE TABLE lance.example11.modules (name STRING, topic STRING, doc STRING, v ARRAY<FLOAT>)
PARTITIONED BY (topic)
TBLPROPERTIES ('v.arrow.fixed-size-list.size' = '2');

INSERT INTO lance.example11.modules VALUES
    ('gzip', 'files', 'Functions that read and write gzipped files.', array(1.0F, 0.0F)),
    ('shutil', 'files', 'Utility functions for copying and archiving files and directory trees.', array(0.9F, 0.2F)),
    ('json', 'texts', 'JSON is a subset of JavaScript syntax used as a lightweight data interchange format.', array(0.2F, 1.0F)),
    ('csv', 'texts', 'This module provides classes that assist in the reading and writing of CSV files.', array(0.5F, 0.8F));

-- Scores are those of one table of all rows, so that partitions can be compared.
SELECT name, topic FROM search('lance.example11.modules', query => 'gzipped csv', search_columns => 'doc') ORDER BY name;
--> csv | texts
--> gzip | files

-- A phrase, a word that has to be there, and one that must not be.
SELECT name FROM search('lance.example11.modules', query => '"directory trees" +files -gzipped', search_columns => 'doc');
--> shutil
--> csv

-- The filter comes before the best are chosen.
SELECT name FROM search(TABLE(SELECT * FROM lance.example11.modules WHERE topic = 'texts'), 'files', search_columns => 'doc');
--> csv

-- An index: the words of its rows are read from it, and rows that come later are found as well.
CREATE INDEX doc_idx ON lance.example11.modules USING inverted (doc);
INSERT INTO lance.example11.modules VALUES ('bz2', 'files', 'Interface to the libbzip2 compression library: gzipped no more.', array(0.9F, 0.0F));
SELECT name FROM search('lance.example11.modules', query => 'gzipped', search_columns => 'doc') ORDER BY name;
--> bz2
--> gzip

-- Both searches together, by the ranks that a row has in each.
SELECT name
FROM hybrid_search('lance.example11.modules', query => 'gzipped', query_vector => array(1.0, 0.0), search_columns => 'doc', num_results => 1);
--> gzip

DROP NAMESPACE lance.example11 CASCADE;
