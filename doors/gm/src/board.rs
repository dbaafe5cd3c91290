//! What gm_board_info shows where processes are started by hand: the map. It takes no place in it,
//! which belongs to the process that it would ask about.

use crate::hand::Map;
use crate::settings::Variables;

/// Which node of LAPI_GM_MAP this is, from 1, and the names of all nodes' hosts. `None`: it is not
/// set.
///
/// # Errors
/// A sentence that names the variable, or the line of the map, that is wrong.
pub fn by_hand() -> Result<Option<(u32, Vec<String>)>, String> {
    let Some(path) = Variables::read()?.map else { return Ok(None) };
    let Map { nodes, own } = Map::read_here(&path)?;
    Ok(Some((own + 1, nodes.into_iter().map(|node| node.host).collect())))
}
