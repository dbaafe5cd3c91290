//! Atomic operations: what they do, and to which kind of number.

/// A kind of number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// `int32_t`.
    Int32 = 1,
    /// `int64_t`.
    Int64 = 2,
    /// `int128_t`.
    Int128 = 3,
    /// `uint32_t`.
    Uint32 = 4,
    /// `uint64_t`.
    Uint64 = 5,
    /// `float`.
    Float = 6,
    /// `double`.
    Double = 7,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Int32, Self::Int64, Self::Int128, Self::Uint32, Self::Uint64, Self::Float, Self::Double];

    /// The kind of a byte.
    pub fn of(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == byte)
    }

    /// Bytes of such a number, which stands at a multiple of them.
    pub fn size(self) -> usize {
        match self {
            Self::Int32 | Self::Uint32 | Self::Float => 4,
            Self::Int64 | Self::Uint64 | Self::Double => 8,
            Self::Int128 => 16,
        }
    }
}

/// What an operation does to a number. Each has the number of before as its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Change {
    /// Nothing.
    Fetch = 1,
    /// The operand takes its place.
    Swap = 2,
    /// The operand takes its place if it equals the comparand.
    CompareSwap = 3,
    /// The operand is added, without regard to overflow.
    Add = 4,
    /// The operand is subtracted, without regard to overflow.
    Subtract = 5,
    /// The operand takes its place if it is less.
    Min = 6,
    /// The operand takes its place if it is greater.
    Max = 7,
    /// Bits that the operand has not are cleared.
    And = 8,
    /// Bits of the operand are set.
    Or = 9,
    /// Bits of the operand are changed.
    Xor = 10,
}

impl Change {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Fetch,
        Self::Swap,
        Self::CompareSwap,
        Self::Add,
        Self::Subtract,
        Self::Min,
        Self::Max,
        Self::And,
        Self::Or,
        Self::Xor,
    ];

    /// The change of a byte.
    pub fn of(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|change| *change as u8 == byte)
    }

    /// Whether the interface has this change for such numbers.
    pub fn takes(self, kind: Kind) -> bool {
        let is_float = matches!(kind, Kind::Float | Kind::Double);
        match self {
            Self::Fetch | Self::Swap => true,
            Self::CompareSwap => !is_float,
            Self::Add | Self::Subtract | Self::Min | Self::Max => kind != Kind::Int128,
            Self::And | Self::Or | Self::Xor => matches!(kind, Kind::Uint32 | Kind::Uint64),
        }
    }

    /// Whether it needs the right to write.
    pub fn writes(self) -> bool {
        self != Self::Fetch
    }

    /// The number that takes the place of `old`. A number is in the low bytes of 128 bits, whose
    /// others are not regarded, and 0 in the result. Pairs that [`Self::takes`] refuses leave it.
    pub fn apply(self, kind: Kind, old: u128, operand: u128, comparand: u128) -> u128 {
        macro_rules! numbers {
            ($type:ty, $bits:ty, $to:expr, $from:expr, $add:expr, $subtract:expr) => {{
                let (old, new): ($type, $type) = ($to(old as $bits), $to(operand as $bits));
                let result: $type = match self {
                    Self::Swap => new,
                    Self::Add => $add(old, new),
                    Self::Subtract => $subtract(old, new),
                    Self::Min if new < old => new,
                    Self::Max if new > old => new,
                    _ => old,
                };
                u128::from($from(result))
            }};
        }
        let mask = u128::MAX >> (128 - 8 * kind.size());
        let (low_old, low_operand) = (old & mask, operand & mask);
        match self {
            _ if !self.takes(kind) => return low_old,
            Self::Fetch => return low_old,
            Self::CompareSwap => {
                return if low_old == comparand & mask { low_operand } else { low_old };
            }
            Self::And => return low_old & low_operand,
            Self::Or => return low_old | low_operand,
            Self::Xor => return low_old ^ low_operand,
            _ => {}
        }
        let (f32_of, f64_of) = (f32::from_bits, f64::from_bits);
        match kind {
            Kind::Int128 => low_operand,
            Kind::Int32 => numbers!(
                i32,
                u32,
                |bits: u32| bits.cast_signed(),
                |n: i32| n.cast_unsigned(),
                i32::wrapping_add,
                i32::wrapping_sub
            ),
            Kind::Int64 => numbers!(
                i64,
                u64,
                |bits: u64| bits.cast_signed(),
                |n: i64| n.cast_unsigned(),
                i64::wrapping_add,
                i64::wrapping_sub
            ),
            Kind::Uint32 => {
                numbers!(u32, u32, |bits| bits, |n: u32| n, u32::wrapping_add, u32::wrapping_sub)
            }
            Kind::Uint64 => {
                numbers!(u64, u64, |bits| bits, |n: u64| n, u64::wrapping_add, u64::wrapping_sub)
            }
            Kind::Float => {
                numbers!(f32, u32, f32_of, f32::to_bits, |a: f32, b: f32| a + b, |a: f32, b: f32| a - b)
            }
            Kind::Double => {
                numbers!(f64, u64, f64_of, f64::to_bits, |a: f64, b: f64| a + b, |a: f64, b: f64| a - b)
            }
        }
    }
}
