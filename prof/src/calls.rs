//! What is counted separately: the calls, the handlers, and the ways in which data moves.

/// Declares an enumeration of u16 from 1 on whose members have names.
macro_rules! named {
    ($(#[$about:meta])* $name:ident { $($member:ident = $text:literal, $class:ident;)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u16)]
        pub enum $name { None, $($member,)* }

        impl $name {
            /// All of them, in the order of their numbers, from 1.
            pub const ALL: &[$name] = &[$($name::$member,)*];

            /// The name that reports show.
            pub fn name(self) -> &'static str {
                match self { $name::None => "", $($name::$member => $text,)* }
            }

            /// Its class in the timeline.
            pub fn class(self) -> Class {
                match self { $name::None => Class::Other, $($name::$member => Class::$class,)* }
            }
        }
    };
}

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

named! {
    /// A call, or a request of LAPI_Xfer, or a kind of handler.
    Call {
        Init = "LAPI_Init", Other;
        Term = "LAPI_Term", Other;
        Qenv = "LAPI_Qenv", Other;
        Senv = "LAPI_Senv", Other;
        MsgString = "LAPI_Msg_string", Other;
        AddrSet = "LAPI_Addr_set", Other;
        AddrGet = "LAPI_Addr_get", Other;
        Address = "LAPI_Address", Other;
        AddressInit = "LAPI_Address_init", Wait;
        AddressInit64 = "LAPI_Address_init64", Wait;
        Put = "LAPI_Put", Put;
        Get = "LAPI_Get", Get;
        Amsend = "LAPI_Amsend", Am;
        Rmw = "LAPI_Rmw", Rmw;
        Rmw64 = "LAPI_Rmw64", Rmw;
        Util = "LAPI_Util", Other;
        Getcntr = "LAPI_Getcntr", Wait;
        Setcntr = "LAPI_Setcntr", Other;
        Waitcntr = "LAPI_Waitcntr", Wait;
        Probe = "LAPI_Probe", Wait;
        Msgpoll = "LAPI_Msgpoll", Wait;
        Fence = "LAPI_Fence", Wait;
        Gfence = "LAPI_Gfence", Wait;
        Amsendv = "LAPI_Amsendv", Am;
        Putv = "LAPI_Putv", Put;
        Getv = "LAPI_Getv", Get;
        NopollWait = "LAPI_Nopoll_wait", Wait;
        PurgeTotask = "LAPI_Purge_totask", Other;
        ResumeTotask = "LAPI_Resume_totask", Other;
        SetcntrWstatus = "LAPI_Setcntr_wstatus", Other;
        XferGet = "LAPI_Xfer GET", Get;
        XferAm = "LAPI_Xfer AM", Am;
        XferPut = "LAPI_Xfer PUT", Put;
        XferGetv = "LAPI_Xfer GETV", Get;
        XferPutv = "LAPI_Xfer PUTV", Put;
        XferAmv = "LAPI_Xfer AMV", Am;
        XferRmw = "LAPI_Xfer RMW", Rmw;
        XferDgsp = "LAPI_Xfer DGSP", Am;
        XferAmLw = "LAPI_Xfer AM_LW", Am;
        XferOther = "LAPI_Xfer", Other;
        HeaderHandler = "header handler", Handler;
        CompletionHandler = "completion handler", Handler;
        SendHandler = "send completion handler", Handler;
    }
}

impl Call {
    /// Whether it is one of the program's handlers and not a call.
    pub fn is_handler(self) -> bool {
        self.class() == Class::Handler
    }
}

#[cfg(test)]
mod tests {
    use super::Call;

    #[test]
    fn numbers_follow_the_list() {
        for (at, call) in Call::ALL.iter().enumerate() {
            assert_eq!(*call as usize, at + 1, "{}", call.name());
        }
    }
}
