{{ config(
    materialized='incremental',
    incremental_strategy='merge',
    unique_key='id',
    on_schema_change='sync_all_columns',
    not_matched_by_source_action='delete',
    not_matched_by_source_condition="DBT_INTERNAL_DEST.region = 'south'",
) }}
{% if is_incremental() %}
select id, region, {{ var('run') }} as run, 'later' as added from {{ ref('orders') }} where id in (1, 4)
{% else %}
select id, region, {{ var('run') }} as run, 'first' as removed from {{ ref('orders') }}
{% endif %}
