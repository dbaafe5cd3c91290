//! What the tools say to a user: profiles, reports, statuses, settings.

mod ask;
mod settings;
