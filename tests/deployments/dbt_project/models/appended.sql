{{ config(materialized='incremental', file_format='lance') }}
select id, {{ var('run') }} as run from {{ ref('recent') }}
