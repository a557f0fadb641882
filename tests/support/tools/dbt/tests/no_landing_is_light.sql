select landing from {{ ref('checked_landings') }} where tonnes < 0
