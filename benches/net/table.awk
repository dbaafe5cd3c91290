# Makes the tables of benches/net/run.sh. Each input line: system round pattern size microseconds.
# A figure is the median over the rounds. A ratio is the median of the ratios of the rounds: both figures of a ratio were taken in
# one round, shortly after each other.

function median(values, n,    sorted, i, j, value) {
    for (i = 1; i <= n; i++) {
        value = values[i]
        for (j = i - 1; j >= 1 && sorted[j] > value; j--) sorted[j + 1] = sorted[j]
        sorted[j + 1] = value
    }
    return n % 2 ? sorted[(n + 1) / 2] : (sorted[n / 2] + sorted[n / 2 + 1]) / 2
}

# Microseconds; -1: not measured.
function figure(who, pattern, size,    r, n, values) {
    for (r = 1; r <= rounds; r++)
        if ((who, r, pattern, size) in taken) values[++n] = taken[who, r, pattern, size]
    return n ? median(values, n) : -1
}

function ratio(who, pattern, other, its, size,    r, n, values) {
    for (r = 1; r <= rounds; r++)
        if (((who, r, pattern, size) in taken) && ((other, r, its, size) in taken))
            values[++n] = taken[who, r, pattern, size] / taken[other, r, its, size]
    return n ? median(values, n) : -1
}

function show_time(us) { return us < 0 ? "-" : us < 100 ? sprintf("%.2f", us) : sprintf("%.0f", us) }
function show_rate(size, us) { return us <= 0 ? "-" : sprintf(size / us < 10 ? "%.2f" : "%.0f", size / us) }
function show_ratio(r) { return r < 0 ? "-" : sprintf("%.2f", r) }
function bytes(size) { return size >= 1048576 ? size / 1048576 " MiB" : size >= 1024 ? size / 1024 " KiB" : size " B" }

function show(size, us, rate) { return rate ? show_rate(size, us) : show_time(us) }
function quotient(size, r, rate) { return show_ratio(rate && r > 0 ? 1 / r : r) }

# One table: the systems' pattern, LAPI's own name for it, and whether it shows MB/s.
function table(title, pattern, lapi, rate,    i, s, cells, last) {
    last = pattern == "message" ? " | fi_pingpong" : ""
    printf "\n### %s\n\n", title
    printf "| size | LAPI | LAPI, bulk transfer | libfabric | MPICH | Open MPI%s | LAPI / libfabric | bulk / libfabric | LAPI / MPICH | LAPI / Open MPI |\n", last
    printf "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|%s\n", last ? "---:|" : ""
    for (i = 1; i <= sizes; i++) {
        s = size_of[i]
        if (figure("lapi", lapi, s) < 0) continue
        cells = show(s, figure("lapi", lapi, s), rate) " | " show(s, figure("lapi_bulk", lapi, s), rate)
        cells = cells " | " show(s, figure("raw", pattern, s), rate) " | " show(s, figure("mpich", pattern, s), rate)
        cells = cells " | " show(s, figure("openmpi", pattern, s), rate)
        if (last) cells = cells " | " show(s, figure("pingpong", pattern, s), rate)
        printf "| %s | %s | %s | %s | %s | %s |\n", bytes(s), cells, quotient(s, ratio("lapi", lapi, "raw", pattern, s), rate), \
            quotient(s, ratio("lapi_bulk", lapi, "raw", pattern, s), rate), \
            quotient(s, ratio("lapi", lapi, "mpich", pattern, s), rate), quotient(s, ratio("lapi", lapi, "openmpi", pattern, s), rate)
    }
}

# LAPI over UDP: two of its patterns beside one of another system.
function udp_table(title, first, second, who, its, called, rate,    i, s, cells) {
    printf "\n### %s\n\n| size | LAPI, active message | LAPI, put with target counter | %s | message / %s | put / %s |\n", title, called, called, called
    printf "|---|---:|---:|---:|---:|---:|\n"
    for (i = 1; i <= sizes; i++) {
        s = size_of[i]
        if (figure("udp", first, s) < 0 || figure(who, its, s) < 0) continue
        cells = show(s, figure("udp", first, s), rate) " | " show(s, figure("udp", second, s), rate) " | " show(s, figure(who, its, s), rate)
        printf "| %s | %s | %s | %s |\n", bytes(s), cells, quotient(s, ratio("udp", first, who, its, s), rate), \
            quotient(s, ratio("udp", second, who, its, s), rate)
    }
}

function lossy_table(title,    i, s, own, other) {
    printf "\n### %s\n\n| size | LAPI over UDP | libfabric, udp;ofi_rxd | LAPI / libfabric |\n|---|---:|---:|---:|\n", title
    for (i = 1; i <= sizes; i++) {
        s = size_of[i]
        own = figure("lossy_udp", "message_stream", s)
        other = figure("lossy_rxd", "message_stream", s)
        if (own < 0 && other < 0) continue
        printf "| %s | %s | %s | %s |\n", bytes(s), show_rate(s, own), show_rate(s, other), \
            quotient(s, ratio("lossy_udp", "message_stream", "lossy_rxd", "message_stream", s), 1)
    }
}

NF == 5 {
    if (!($4 in known)) { known[$4] = 1; size_of[++sizes] = $4 }
    taken[$1, $2, $3, $4] = $5
    if ($2 > rounds) rounds = $2
}

END {
    table("Active message, beside two-sided messages (one way, µs)", "message", "message", 0)
    table("Put with target counter, beside two-sided messages (one way, µs)", "message", "put_notify", 0)
    table("Put until it is complete, beside one-sided calls (round trip, µs)", "put", "put", 0)
    table("Get, beside one-sided calls (round trip, µs)", "get", "get", 0)
    table("Active messages, a window in flight, beside two-sided messages (MB/s)", "message_stream", "message_stream", 1)
    table("Puts with target counters, a window in flight, beside two-sided messages (MB/s)", "message_stream", "put_notify_stream", 1)
    table("Puts until they are complete, a window in flight, beside one-sided calls (MB/s)", "put_stream", "put_stream", 1)
    udp_table("Over UDP, one way, beside a datagram (µs)", "message", "put_notify", "sockets", "datagram", "datagram", 0)
    udp_table("Over UDP, a window in flight, beside TCP (MB/s)", "message_stream", "put_notify_stream", "sockets", "message_stream", "TCP", 1)
    lossy_table("Active messages over UDP, a window in flight, 1 % of the datagrams lost (MB/s)")
}
