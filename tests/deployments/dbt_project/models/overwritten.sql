{{ config(materialized='incremental', incremental_strategy='insert_overwrite', partition_by='months(sold_at)') }}
select id, sold_at, {{ var('run') }} as run from {{ ref('orders') }}
{% if is_incremental() %} where id = 1 {% endif %}
