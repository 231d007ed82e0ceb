SELECT partition_field_id_bucket, location, read_version
FROM customers.__manifest
WHERE object_type = 'table'
