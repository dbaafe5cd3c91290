//! What a job inherits from whoever starts it: signals, descriptors, limits, folders.
