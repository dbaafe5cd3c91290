# Makes the tables of interrupt mode. A figure is the median over the runs; best is the best of all.

function middle(list, n,    sorted, i, j, t) {
    for (i = 1; i <= n; i++) {
        t = list[i]
        for (j = i - 1; j >= 1 && sorted[j] > t; j--) sorted[j + 1] = sorted[j]
        sorted[j + 1] = t
    }
    return n % 2 ? sorted[(n + 1) / 2] : (sorted[n / 2] + sorted[n / 2 + 1]) / 2
}

function figure(kind, column,    list, i) {
    for (i = 1; i <= runs[kind]; i++) list[i] = value[kind, column, i]
    return middle(list, runs[kind])
}

function show(us) { return us < 0 ? "-" : us < 10 ? sprintf("%.2f", us) : us < 1000 ? sprintf("%.1f", us) : sprintf("%.0f", us) }

function row(text, kind, polled,    m) {
    m = figure(kind, 1)
    printf "| %s | %s | %s | %s | %.2f | %s |\n", text, show(m), show(figure(kind, 2)), show(best[kind]), m / figure("futex", 1),
        polled == "" ? "-" : sprintf("%.1f", m / figure(polled, 1))
}


$1 == "served" {
    n = ++runs[$2]
    value[$2, 1, n] = $3
    value[$2, 2, n] = $4
    if (!($2 in best) || $5 < best[$2]) best[$2] = $5
}

$1 == "polling" {
    n = ++runs["polling"]
    for (i = 1; i <= 5; i++) value["polling", i, n] = $(i + 1)
}

END {
    printf "\n### Time until a message of 8 bytes has been served (µs)\n\n"
    printf "| target | median | 9 of 10 within | best | / futex | / polling target |\n|---|---:|---:|---:|---:|---:|\n"
    row("no LAPI: a thread that sleeps on a futex has run, another computes", "futex", "")
    if (figure("eventfd", 1) >= 0) row("no LAPI: the same on an event descriptor", "eventfd", "")
    row("polls: header handler has run", "am_polled", "")
    row("polls: counter was seen", "put_polled", "")
    row("computes: header handler has run", "am_computing", "am_polled")
    row("computes: its loop has seen the counter", "put_computing", "put_polled")
    row("computes, and another message came just before", "am_next", "am_polled")
    row("has stopped polling 50 µs ago: header handler has run", "am_after", "am_polled")
    row("has stopped polling 50 µs ago: its loop has seen the counter", "put_after", "put_polled")
    printf "\n### What interrupt mode costs tasks that poll\n\n"
    printf "| active message of 8 bytes, one way | INTERRUPT_SET 0 | INTERRUPT_SET 1 | ratio in pairs |\n|---|---:|---:|---:|\n"
    printf "| µs, median | %.3f | %.3f | %.3f |\n", figure("polling", 1), figure("polling", 2), figure("polling", 3)
    printf "| `lapi-intr` was switched to, per second | %.1f | %.1f | - |\n", figure("polling", 4), figure("polling", 5)
}
