{{ config(
    file_format='lance',
    partition_by=['months(sold_at)', 'bucket(4, id)'],
    contract={'enforced': true},
    persist_docs={'relation': true, 'columns': true},
    tblproperties={'team': 'sales'},
) }}
select id, region, amount, sold_at from {{ ref('raw') }}
