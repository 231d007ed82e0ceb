-- The nearest vectors, over one partition or all of them.

DROP NAMESPACE IF EXISTS lance.example10 CASCADE;
CREATE NAMESPACE lance.example10;

CREATE TABLE lance.example10.documents (id BIGINT, tenant STRING, title STRING, v ARRAY<FLOAT>)
PARTITIONED BY (tenant)
TBLPROPERTIES ('v.arrow.fixed-size-list.size' = '3');

INSERT INTO lance.example10.documents VALUES
    (1, 'a', 'apples', array(1.0F, 0.0F, 0.0F)),
    (2, 'a', 'bicycles', array(0.0F, 1.0F, 0.0F)),
    (3, 'b', 'pears', array(0.5F, 0.0F, 0.0F)),
    (4, 'b', 'trains', array(0.0F, 0.5F, 0.5F));

-- All tenants give one list.
SELECT tenant, title, _distance
FROM vector_search('lance.example10.documents', array(1.0, 0.0, 0.0), num_results => 2);
--> a | apples | 0.0
--> b | pears | 0.25

-- The filter comes before the best two are chosen.
SELECT title
FROM vector_search(TABLE(SELECT * FROM lance.example10.documents WHERE tenant = 'b'), array(1.0, 0.0, 0.0), num_results => 2);
--> pears
--> trains

-- An index of each partition, made and dropped in one commit.
CREATE INDEX v_idx ON lance.example10.documents USING ivf_flat (v) OPTIONS (min_bytes = '0');
SELECT DISTINCT index, type FROM lance.example10.documents.indexes;
--> v_idx | IVF_FLAT
DROP INDEX v_idx ON lance.example10.documents;

-- A vector of another size is refused.
SELECT * FROM vector_search('lance.example10.documents', array(1.0, 0.0));
--! QUERY_DIMENSION_MISMATCH

DROP NAMESPACE lance.example10 CASCADE;
