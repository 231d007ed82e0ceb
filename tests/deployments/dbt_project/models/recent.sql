{{ config(materialized='ephemeral') }}
select * from {{ ref('orders') }} where sold_at >= timestamp '2026-01-01'
