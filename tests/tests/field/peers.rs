//! Who is alive, and whose fault an error is: hidden processes, threads that outlive the main thread, bad addresses.
