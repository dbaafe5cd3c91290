//! What is counted separately: the calls, the handlers, and the ways in which data moves.

/// The classes of the timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Puts of every kind.
    Put,
    /// Gets of every kind.
    Get,
    /// Active messages of every kind.
    Am,
    /// Read-modify-write.
    Rmw,
    /// Calls that wait or look.
    Wait,
    /// Handlers of the program.
    Handler,
    /// All the rest.
    Other,
}

impl Class {
    /// The names of all, in their order.
    pub const NAMES: [&str; 7] = ["put", "get", "am", "rmw", "wait", "handler", "other"];
    /// How many there are.
    pub const COUNT: usize = Self::NAMES.len();
    /// How many of them, from the first on, move data.
    pub const MOVING: usize = 4;
}

/// Declares [`Call`]: the calls of the table, by C's names, and what follows.
macro_rules! declare {
    ($($(#[$doc:meta])* $name:ident $call:ident $capitals:ident $arguments:tt;)*) => {
        declare! {
            $($name = stringify!($name),)*
            XferGet = "LAPI_Xfer GET",
            XferAm = "LAPI_Xfer AM",
            XferPut = "LAPI_Xfer PUT",
            XferGetv = "LAPI_Xfer GETV",
            XferPutv = "LAPI_Xfer PUTV",
            XferAmv = "LAPI_Xfer AMV",
            XferRmw = "LAPI_Xfer RMW",
            XferDgsp = "LAPI_Xfer DGSP",
            XferAmLw = "LAPI_Xfer AM_LW",
            XferRdmaGet = "LAPI_Xfer RDMA GET",
            XferRdmaPut = "LAPI_Xfer RDMA PUT",
            HeaderHandler = "header handler",
            CompletionHandler = "completion handler",
            SendHandler = "send completion handler",
        }
    };
    ($($member:ident = $text:expr,)*) => {
        /// A call, or a request of LAPI_Xfer, or a kind of handler. LAPI_Xfer itself is a request
        /// of an unknown type.
        #[allow(non_camel_case_types, reason = "C's names")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u16)]
        pub enum Call { None, $($member,)* }

        impl Call {
            /// All of them, in the order of their numbers, from 1.
            pub const ALL: &[Call] = &[$(Call::$member,)*];

            /// The name that reports show.
            pub fn name(self) -> &'static str {
                match self { Call::None => "", $(Call::$member => $text,)* }
            }
        }
    };
}

openlapi::for_each_call!(declare);

impl Call {
    /// The call's class in the timeline.
    #[inline]
    pub fn class(self) -> Class {
        // A load; a match would be a jump to an address from a table.
        CLASSES[self as usize]
    }

    /// Whether it moves data.
    #[inline]
    pub const fn moves(self) -> bool {
        (CLASSES[self as usize] as usize) < Class::MOVING
    }

    /// Whether it may be counted without being timed: the calls that programs make most often.
    #[inline]
    pub const fn may_go_untimed(self) -> bool {
        self.moves() || matches!(self, Self::LAPI_Waitcntr | Self::LAPI_Getcntr | Self::LAPI_Probe)
    }

    const fn classify(self) -> Class {
        match self {
            Self::LAPI_Put | Self::LAPI_Putv | Self::XferPut | Self::XferPutv | Self::XferRdmaPut => {
                Class::Put
            }
            Self::LAPI_Get | Self::LAPI_Getv | Self::XferGet | Self::XferGetv | Self::XferRdmaGet => {
                Class::Get
            }
            Self::LAPI_Amsend
            | Self::LAPI_Amsendv
            | Self::XferAm
            | Self::XferAmv
            | Self::XferDgsp
            | Self::XferAmLw => Class::Am,
            Self::LAPI_Rmw | Self::LAPI_Rmw64 | Self::XferRmw => Class::Rmw,
            Self::LAPI_Address_init
            | Self::LAPI_Address_init64
            | Self::LAPI_Getcntr
            | Self::LAPI_Waitcntr
            | Self::LAPI_Probe
            | Self::LAPI_Msgpoll
            | Self::LAPI_Fence
            | Self::LAPI_Gfence
            | Self::LAPI_Nopoll_wait => Class::Wait,
            Self::HeaderHandler | Self::CompletionHandler | Self::SendHandler => Class::Handler,
            Self::None
            | Self::LAPI_Init
            | Self::LAPI_Term
            | Self::LAPI_Qenv
            | Self::LAPI_Senv
            | Self::LAPI_Msg_string
            | Self::LAPI_Addr_set
            | Self::LAPI_Addr_get
            | Self::LAPI_Address
            | Self::LAPI_Xfer
            | Self::LAPI_Util
            | Self::LAPI_Setcntr
            | Self::LAPI_Purge_totask
            | Self::LAPI_Resume_totask
            | Self::LAPI_Setcntr_wstatus => Class::Other,
        }
    }

    /// Whether it is one of the program's handlers and not a call.
    pub fn is_handler(self) -> bool {
        self.class() == Class::Handler
    }
}

/// The class of each call, by the call's number.
static CLASSES: [Class; Call::ALL.len() + 1] = {
    let mut classes = [Call::None.classify(); Call::ALL.len() + 1];
    let mut at = 0;
    while at < Call::ALL.len() {
        classes[Call::ALL[at] as usize] = Call::ALL[at].classify();
        at += 1;
    }
    classes
};

#[cfg(test)]
mod tests {
    use super::{Call, Class};
    use std::collections::BTreeSet;

    #[test]
    fn numbers_and_names_are_of_one_call_each() {
        let names: BTreeSet<&str> = Call::ALL.iter().map(|call| call.name()).collect();
        assert_eq!(names.len(), Call::ALL.len());
        assert_eq!(Call::ALL.last(), Some(&Call::SendHandler));
        assert_eq!(Call::SendHandler as usize, Call::ALL.len());
        assert_eq!(Call::LAPI_Nopoll_wait.name(), "LAPI_Nopoll_wait");
    }

    #[test]
    fn the_table_is_divided_as_the_timeline_shows_it() {
        let of = |class| Call::ALL.iter().filter(|call| call.class() == class).count();
        let classes = [Class::Put, Class::Get, Class::Am, Class::Rmw, Class::Wait, Class::Handler];
        assert_eq!(classes.map(of), [5, 5, 6, 3, 9, 3]);
    }
}
