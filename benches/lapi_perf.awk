# From lapi_perf --json --cache-line to the lines of bench.h, under the names that ucx_bench.c gives the same patterns:
# name size median best line_before line_after (microseconds, nanoseconds).

BEGIN {
    split("am_lat am amread_lat am_inplace amlw_lat am_lw put_seen put_seen put_lat put_notify get_lat get add_lat fetch_add " \
        "gfence barrier am_bw am_stream put_cbw put_stream get_bw get_stream", pairs)
    for (i = 1; i in pairs; i += 2) names[pairs[i]] = pairs[i + 1]
}

# Each value has a line of its own: "name": value,
function value() { gsub(/[",]/, "", $2); return $2 }

$1 == "\"results\":" { inside = 1 }
!inside { next }
$1 == "\"test\":" { test = value() }
$1 == "\"size\":" { size = value() }
$1 == "\"min\":" { best = value() }
$1 == "\"median\":" { median = value() }
$1 == "\"cache_line_ns\":" { getline; before = $1 + 0; getline; after = $1 + 0 }
# The last value of a row.
$1 == "\"right\":" {
    if (!(test in names) || value() != "true") { print test " of " size " bytes has no name here, or wrong data" >"/dev/stderr"; exit 1 }
    printf "%s %d %.4f %.4f %.1f %.1f\n", names[test], size, median, best, before, after
}
