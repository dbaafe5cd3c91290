//! LAPI_Address_init, LAPI_Address_init64. LAPI_Addr_set and LAPI_Addr_get are functions of
//! [`super::Held`].

pub use crate::engine::progress::collective::exchange;
