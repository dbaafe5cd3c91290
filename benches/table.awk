# Makes the tables of docs/performance.md, with figures.awk. Each input line: system round name size median best before after
# (microseconds, microseconds, nanoseconds, nanoseconds); system is lapi, lapi_intr, lapi_check, ucx_noattach, ucx_default, impi,
# mpich, ompi or floor.
# A figure counts only when the cache line took about as long before it as after it, and figures of two
# systems are in one row only when it took about as long for both.

function key_of(who, name, size, c) { return who "," name "," size "," c }

function usec(who, name, size, c,    key) {
    key = key_of(who, name, size, c)
    return key in count ? median_of(time, key, count[key]) : -1
}

function line_ns(who, name, size, c,    key) {
    key = key_of(who, name, size, c)
    return median_of(line, key, count[key])
}

function least(a, b) { return a < 0 ? b : b < 0 ? a : a < b ? a : b }

# The least of the MPIs.
function best_mpi(name, size, c,    i, best) {
    best = -1
    for (i = 1; i <= 3; i++)
        best = least(best, usec(mpis[i], name, size, c))
    return best
}

# The class of distance in which LAPI and UCX, where they ran, have the most figures of this kind; 0 when there is none.
function best_class(name, peer, size,    c, n, most, chosen, i, k) {
    chosen = most = 0
    for (c = 1; c <= 3; c++) {
        n = 1000
        for (i = 1; i <= 3; i++) {
            if (!(compared[i] in ran)) continue
            k = key_of(compared[i], i == 1 ? name : peer, size, c)
            if (!(k in count)) n = 0
            else if (count[k] < n) n = count[k]
        }
        if (n < 1000 && n > most) { most = n; chosen = c }
    }
    figures = most
    return chosen
}

function rate(size, us) {
    return us <= 0 ? "-" : size <= 1024 ? sprintf("%.2f M/s", 1 / us) : sprintf("%.1f GB/s", size / us / 1000)
}

function row(label, name, peer, size, extra,    c, i, l, li, un, ud, best, mpi, cells) {
    c = best_class(name, peer, size)
    if (c == 0) {
        printf "| %s | no figures at the same distance |\n", label
        return
    }
    l = usec("lapi", name, size, c)
    li = usec("lapi_intr", name, size, c)
    un = usec("ucx_noattach", peer, size, c)
    ud = usec("ucx_default", peer, size, c)
    best = least(un, ud)
    ratio[name "," size] = l > 0 && best > 0 ? l / best : -1
    cells = show(l) " | " show(li) " | " show(un) " | " show(ud)
    for (i = 1; i <= 3; i++)
        cells = cells " | " show(usec(mpis[i], peer, size, c))
    if (extra == "alloc")
        cells = cells " | " show(least(usec("ucx_noattach", peer "_alloc", size, c), usec("ucx_default", peer "_alloc", size, c))) \
            " | " show(best_mpi(peer "_alloc", size, c))
    else if (extra == "rate")
        cells = cells " | " rate(size, l) " | " rate(size, best)
    mpi = best_mpi(peer, size, c)
    printf "| %s | %s | %s | %s | %s, %.0f / %.0f ns, %d |\n", label, cells, ratio[name "," size] < 0 ? "-" : sprintf("%.2f", ratio[name "," size]), \
        (l > 0 && mpi > 0) ? sprintf("%.2f", l / mpi) : "-", class_name(c), \
        l < 0 ? 0 : line_ns("lapi", name, size, c), best < 0 ? 0 : line_ns(best == un ? "ucx_noattach" : "ucx_default", peer, size, c), figures
}

function head(title, first, extra,    more, rule) {
    more = extra == "alloc" ? " | UCX, own shared memory | best MPI, own memory" : extra == "rate" ? " | LAPI rate | UCX rate" : ""
    rule = extra == "alloc" ? "---:|---:|" : extra == "rate" ? "---:|---:|" : ""
    printf "\n### %s\n\n| %s | LAPI | LAPI, interrupts on | UCX, no attach | UCX, default | Intel MPI | MPICH | Open MPI%s | LAPI / best UCX | LAPI / best MPI | line: LAPI / UCX, figures |\n", title, first, more
    printf "|---|---:|---:|---:|---:|---:|---:|---:|%s---:|---:|---|\n", rule
}

function table(title, name, peer, extra,    i) {
    head(title, "size", extra)
    for (i = 1; i <= sizes[name]; i++)
        row(bytes(size_of[name, i]), name, peer, size_of[name, i], extra)
}

function floor_figure(name, size,    i, k, n, values) {
    n = 0
    for (i = 1; i <= 3; i++) {
        k = key_of("floor", name, size, i)
        if (k in count && count[k] > n) { n = count[k]; values = k }
    }
    return n ? median_of(time, values, n) : -1
}

function floor_table(    i, s, copy, attach, fresh) {
    printf "\n### The machine itself\n\n"
    printf "| what | µs | with one pause instruction between two looks, µs |\n|---|---:|---:|\n"
    printf "| one cache line crosses | %s | |\n", show(floor_figure("line", 0))
    for (i = 1; i <= sizes["flag_payload"]; i++) {
        s = size_of["flag_payload", i]
        printf "| flag and %s cross and are copied | %s | %s |\n", bytes(s), show(floor_figure("flag_payload", s)), show(floor_figure("flag_paused", s))
    }
    printf "| sleeper woken on the other processor, futex / eventfd | %s / %s | |\n", show(floor_figure("wake_futex", 0)), show(floor_figure("wake_eventfd", 0))
    printf "| sleeper woken on the same processor, futex / eventfd | %s / %s | |\n", show(floor_figure("wake_futex_same", 0)), show(floor_figure("wake_eventfd_same", 0))
    printf "\n| size | memcpy µs | GB/s | process_vm_readv µs | GB/s | of data just written µs | GB/s |\n|---|---:|---:|---:|---:|---:|---:|\n"
    for (i = 1; i <= sizes["memcpy"]; i++) {
        s = size_of["memcpy", i]
        copy = floor_figure("memcpy", s)
        attach = floor_figure("vm_readv", s)
        fresh = floor_figure("vm_readv_new", s)
        printf "| %s | %s | %.1f | %s | %.1f | %s | %.1f |\n", bytes(s), show(copy), (copy > 0 ? s / copy / 1000 : 0), show(attach), (attach > 0 ? s / attach / 1000 : 0), show(fresh), (fresh > 0 ? s / fresh / 1000 : 0)
    }
}

# The least time of some systems, by that of one, where both have the most figures at the same distance; -1 when there is none.
function quotient(who, name, size, others, peer, peer_size,    c, i, n, most, chosen, list, count_of, best) {
    n = split(others, list)
    most = 0
    for (c = 1; c <= 3; c++) {
        count_of = count[key_of(who, name, size, c)]
        for (i = 1; i <= n; i++)
            if (count[key_of(list[i], peer, peer_size, c)] < count_of) count_of = count[key_of(list[i], peer, peer_size, c)]
        if (count_of > most) { most = count_of; chosen = c }
    }
    if (most == 0) return -1
    best = -1
    for (i = 1; i <= n; i++) best = least(best, usec(list[i], peer, peer_size, chosen))
    return usec(who, name, size, chosen) / best
}

# One aim or several: what they are, and pairs of a figure and the most that it may be.
function aim(text, figures,    list, n, i, most, here, met) {
    n = split(figures, list)
    for (i = 1; i < n; i += 2) {
        most = most (i > 1 ? " / " : "") list[i + 1]
        here = here (i > 1 ? " / " : "") (list[i] < 0 ? "-" : sprintf("%.2f", list[i]))
        met = met (i > 1 ? " / " : "") (list[i] < 0 ? "-" : list[i] <= list[i + 1] + 0.0049 ? "yes" : "**no**")
    }
    printf "| %s | %s | %s | %s |\n", text, most, here, met
}

function beside_ucx(name, size) { return ((name "," size) in ratio) ? ratio[name "," size] : -1 }
function beside(mpi, name, peer, size) { return quotient("lapi", name, size, mpi, peer, size) }

function modes(    name, i, list, titles, c) {
    printf "\n### What interrupts and ERROR_CHK cost (8 bytes, one way)\n\n"
    printf "| call | interrupts on / off | ERROR_CHK on / off |\n|---|---:|---:|\n"
    split("am put_notify", list); split("active message,put with target counter", titles, ",")
    for (i = 1; i <= 2; i++)
        printf "| %s | %s | %s |\n", titles[i], show(quotient("lapi_intr", list[i], 8, "lapi", list[i], 8)), \
            show(quotient("lapi_check", list[i], 8, "lapi", list[i], 8))
}

function aims(    ucx, near, us) {
    ucx = "ucx_noattach ucx_default"
    printf "\n### Aims\n\n| LAPI beside the best mode of UCX, where nothing else is said | at most | here | met |\n|---|---:|---:|---|\n"
    aim("active message, one way, 8 B / 1 KiB / 64 KiB", beside_ucx("am", 8) " 1.1 " beside_ucx("am", 1024) " 1.1 " beside_ucx("am", 65536) " 1.0")
    aim("put of 8 B with target counter, beside UCX's active message", quotient("lapi", "put_notify", 8, ucx, "am", 8) " 1.0")
    aim("active message, window, 8 B / 1 KiB / 64 KiB / 1 MiB / 4 MiB", beside_ucx("am_stream", 8) " 1.3 " beside_ucx("am_stream", 1024) " 0.9 " \
        beside_ucx("am_stream", 65536) " 0.9 " beside_ucx("am_stream", 1048576) " 0.9 " beside_ucx("am_stream", 4194304) " 0.9")
    aim("put, window, 8 B / 1 KiB / 64 KiB / 1 MiB", beside_ucx("put_stream", 8) " 0.8 " beside_ucx("put_stream", 1024) " 0.9 " \
        beside_ucx("put_stream", 65536) " 0.9 " beside_ucx("put_stream", 1048576) " 0.9")
    aim("get, window, 8 B / 1 KiB / 64 KiB", beside_ucx("get_stream", 8) " 1.3 " beside_ucx("get_stream", 1024) " 1.1 " beside_ucx("get_stream", 65536) " 1.0")
    aim("get, one at a time, 1 KiB / 8 KiB", beside_ucx("get", 1024) " 1.0 " beside_ucx("get", 8192) " 1.0")
    aim("active message of 8 B, beside two-sided messages of Open MPI / Intel MPI", beside("ompi", "am", "am", 8) " 0.75 " beside("impi", "am", "am", 8) " 0.75")
    aim("barrier of two, beside Open MPI", beside("ompi", "barrier", "barrier", 0) " 0.7")
    aim("interrupts on / ERROR_CHK on, active message of 8 B, beside both off", quotient("lapi_intr", "am", 8, "lapi", "am", 8) " 1.03 " \
        quotient("lapi_check", "am", 8, "lapi", "am", 8) " 1.03")
    us = usec("lapi", "put_stream", 8, 1)
    near = us < 0 ? "- | not measured: the processors were not near" : sprintf("%.3f µs | %s", us, us < 0.0355 ? "yes" : "**no**")
    printf "| put of 8 B until it is complete, window, with near processors | 0.035 µs | %s |\n", near
}

BEGIN {
    compared[1] = "lapi"; compared[2] = "ucx_noattach"; compared[3] = "ucx_default"
    mpis[1] = "impi"; mpis[2] = "mpich"; mpis[3] = "ompi"
}

NF == 8 {
    if (!(($3 "," $4) in known)) { known[$3 "," $4] = 1; size_of[$3, ++sizes[$3]] = $4 }
    ran[$1] = 1
    total++
    c = class_of($7)
    if (c != class_of($8)) { moved++; next }
    k = key_of($1, $3, $4, c)
    count[k]++
    time[k, count[k]] = $5
    line[k, count[k]] = ($7 + $8) / 2
}

END {
    floor_table()
    table("Active message, copied to the receiver's buffer (one way, µs)", "am", "am")
    table("Active message, read in place by the handler (one way, µs)", "am_inplace", "am_inplace")
    table("Light-weight active message, against UCX's in-place one (one way, µs)", "am_lw", "am_inplace")
    table("Put with target counter (one way, µs)", "put_notify", "put_notify", "alloc")
    table("Put, the target polls the last bytes (one way, µs)", "put_seen", "put_seen", "alloc")
    table("Get (round trip, µs)", "get", "get", "alloc")
    head("Fetch-and-add of 8 bytes and barrier (round trip, µs)", "operation", "alloc")
    row("fetch-and-add", "fetch_add", "fetch_add", 8, "alloc")
    row("barrier of two", "barrier", "barrier", 0, "alloc")
    table("Put, window in flight (µs per message)", "put_stream", "put_stream", "rate")
    table("Get, window in flight (µs per message)", "get_stream", "get_stream", "rate")
    table("Active message, window in flight (µs per message)", "am_stream", "am_stream", "rate")
    modes()
    aims()
    printf "\n%d of %d figures were left out because the distance of the processors changed while they were taken.\n", moved, total
}
