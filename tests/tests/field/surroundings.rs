//! Other software in the process of a task: debuggers, checkers, run-time systems, loaders.
