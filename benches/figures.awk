# Figures of bench.h and lapi_perf in tables: the class of a distance, medians, times and sizes.

function class_of(ns) { return ns < 45 ? 1 : ns < 130 ? 2 : 3 }
function class_name(c) { return c == 1 ? "near" : c == 2 ? "middle" : "far" }

function median_of(values, key, n,    sorted, i, j, t) {
    for (i = 1; i <= n; i++) {
        t = values[key, i]
        for (j = i - 1; j >= 1 && sorted[j] > t; j--) sorted[j + 1] = sorted[j]
        sorted[j + 1] = t
    }
    return n % 2 ? sorted[(n + 1) / 2] : (sorted[n / 2] + sorted[n / 2 + 1]) / 2
}

function show(us) { return us < 0 ? "-" : us < 1 ? sprintf("%.3f", us) : us < 100 ? sprintf("%.2f", us) : sprintf("%.0f", us) }

function bytes(size) {
    return size >= 1048576 ? size / 1048576 " MiB" : size >= 1024 ? size / 1024 " KiB" : size " B"
}
