//! The table of LAPI_Addr_set: functions by index.

use crate::abi::LAPI_ERR_ADDR_HNDL_RANGE;
use crate::error::{Error, Result};
use crate::memory::bytes::fits_pointer;

/// Size of the table: LOC_ADDRTBL_SZ. Indices are 1 up to this, exclusive.
pub const ADDRESS_TABLE: usize = 1024;

/// The functions of a context, 0 for none.
pub struct Addresses(Box<[usize]>);

impl Addresses {
    /// A table without functions.
    pub fn new() -> Self {
        Self(vec![0; ADDRESS_TABLE].into())
    }

    /// Registers a function.
    ///
    /// # Errors
    /// LAPI_ERR_ADDR_HNDL_RANGE: the index is not valid.
    pub fn set(&mut self, index: i32, function: usize) -> Result<()> {
        self.0[place(index)?] = function;
        Ok(())
    }

    /// The function that was registered, 0 for none.
    ///
    /// # Errors
    /// LAPI_ERR_ADDR_HNDL_RANGE: the index is not valid.
    pub fn get(&self, index: i32) -> Result<usize> {
        Ok(self.0[place(index)?])
    }

    /// The function that a message names, by its index or by its address; 0 for one that cannot
    /// be in this task.
    #[inline]
    pub fn resolve(&self, named: u64) -> usize {
        let index = named as usize;
        match named {
            named if named < ADDRESS_TABLE as u64 => self.0[index],
            named if fits_pointer(named) => index,
            _ => 0,
        }
    }
}

/// Whether a message names a function by its index.
pub fn is_index(named: u64) -> bool {
    (1..ADDRESS_TABLE as u64).contains(&named)
}

impl Default for Addresses {
    fn default() -> Self {
        Self::new()
    }
}

fn place(index: i32) -> Result<usize> {
    match usize::try_from(index) {
        Ok(place @ 1..ADDRESS_TABLE) => Ok(place),
        _ => {
            let detail = format!("index {index}; indices are 1 to {}", ADDRESS_TABLE - 1);
            Err(Error::new(LAPI_ERR_ADDR_HNDL_RANGE, detail))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_and_an_address_name_a_function() {
        let mut table = Addresses::new();
        table.set(1, 0x5000).expect("the first index");
        table.set(1023, 0x6000).expect("the last index");
        for invalid in [i32::MIN, -1, 0, 1024] {
            assert_eq!(table.set(invalid, 1).map_err(|error| error.code), Err(LAPI_ERR_ADDR_HNDL_RANGE));
            assert_eq!(table.get(invalid).map_err(|error| error.code), Err(LAPI_ERR_ADDR_HNDL_RANGE));
        }
        assert_eq!((table.get(1), table.get(2)), (Ok(0x5000), Ok(0)));
        assert_eq!([0, 1, 2, 1023, 1024].map(|named| table.resolve(named)), [0, 0x5000, 0, 0x6000, 1024]);
    }
}
