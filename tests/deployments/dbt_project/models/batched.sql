{{ config(
    materialized='incremental',
    incremental_strategy='microbatch',
    event_time='sold_at',
    batch_size='month',
    begin='2026-01-01',
    partition_by='days(sold_at)',
) }}
select id, sold_at, {{ var('run') }} as run from {{ ref('orders') }}
