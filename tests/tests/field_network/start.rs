//! How poe and launchers reach the other hosts, and what happens when one vanishes.
