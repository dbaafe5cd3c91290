//! Which network a job chooses, and what it says when none works.
