//! What a program, the file `fam_pe_config.yaml` and the defaults say together.

use crate::error::{FamError, Result};
use crate::files::{Address, Pe};

/// OpenFAM's version, as `VERSION` of fam_get_option.
const VERSION: &str = "3.2.0";

/// The names of fam_list_options, in its order.
pub const NAMES: [&str; 17] = [
    "VERSION",
    "DEFAULT_REGION_NAME",
    "CIS_SERVER",
    "GRPC_PORT",
    "LIBFABRIC_PROVIDER",
    "FAM_THREAD_MODEL",
    "CIS_INTERFACE_TYPE",
    "OPENFAM_MODEL",
    "FAM_CONTEXT_MODEL",
    "PE_COUNT",
    "PE_ID",
    "RUNTIME",
    "NUM_CONSUMER",
    "FAM_DEFAULT_MEMORY_TYPE",
    "IF_DEVICE",
    "LOC_BUF_ADDR",
    "LOC_BUF_SIZE",
];

/// How PEs are started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runtime {
    /// By a launcher, which gives each its place.
    Launcher,
    /// Each is alone.
    None,
}

/// The members of `Fam_Options` that are texts, in the order of the structure. Empty: not given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Texts {
    /// `defaultRegionName`.
    pub region: String,
    /// `cisServer`.
    pub server: String,
    /// `grpcPort`.
    pub port: String,
    /// `libfabricProvider`.
    pub provider: String,
    /// `famThreadModel`.
    pub threads: String,
    /// `cisInterfaceType`.
    pub interface: String,
    /// `openFamModel`.
    pub model: String,
    /// `famContextModel`.
    pub contexts: String,
    /// `numConsumer`.
    pub consumers: String,
    /// `runtime`.
    pub runtime: String,
    /// `fam_default_memory_type`.
    pub memory: String,
    /// `if_device`.
    pub device: String,
}

/// The options of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// What holds, in texts.
    pub texts: Texts,
    /// Where the keeper listens.
    pub keeper: Address,
    /// How PEs are started.
    pub runtime: Runtime,
    /// The number of `Fam_Memory_Type` of regions that name none; 0: the daemon's.
    pub memory: u32,
    /// `openFamModel` is `shared_memory`: items can be mapped.
    pub is_shared: bool,
}

/// The value of an option, as fam_get_option gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// An int.
    Number(i32),
    /// A uint64_t.
    Size(u64),
    /// A text.
    Text(String),
}

impl Options {
    /// What holds: the program's word, else the file's, else the default.
    ///
    /// # Errors
    /// [`FamError::Invalid`]: a value that is none, with the option's name.
    pub fn new(given: Texts, file: &Pe) -> Result<Self> {
        let of_file = |key: &str| file.texts.get(key).cloned().unwrap_or_default();
        let choose = |given: String, file: String, default: &str| {
            [given, file].into_iter().find(|text| !text.is_empty()).unwrap_or_else(|| default.to_owned())
        };
        let keeper = file.keeper.as_ref();
        let texts = Texts {
            region: given.region,
            server: choose(given.server, keeper.map_or_else(String::new, |at| at.host.clone()), "127.0.0.1"),
            port: choose(given.port, keeper.map_or_else(String::new, |at| at.port.to_string()), "8787"),
            provider: choose(given.provider, of_file("provider"), "sockets"),
            threads: choose(given.threads, thread_model(&of_file("FamThreadModel"))?, "FAM_THREAD_SERIALIZE"),
            interface: choose(given.interface, of_file("client_interface_type"), "rpc"),
            model: choose(given.model, of_file("openfam_model"), "memory_server"),
            contexts: choose(given.contexts, String::new(), "FAM_CONTEXT_DEFAULT"),
            consumers: choose(given.consumers, String::new(), "1"),
            runtime: choose(given.runtime, of_file("runtime"), "PMIX"),
            memory: choose(given.memory, of_file("default_memory_type"), ""),
            device: choose(given.device, of_file("if_device"), ""),
        };
        let one_of = |name: &str, value: &str, valid: &[&str]| match valid.contains(&value) {
            true => Ok(()),
            false => Err(wrong(name, value, &valid.join(", "))),
        };
        one_of("famThreadModel", &texts.threads, &["FAM_THREAD_SERIALIZE", "FAM_THREAD_MULTIPLE"])?;
        one_of("cisInterfaceType", &texts.interface, &["rpc", "direct"])?;
        one_of("openFamModel", &texts.model, &["memory_server", "shared_memory"])?;
        one_of("famContextModel", &texts.contexts, &["FAM_CONTEXT_DEFAULT", "FAM_CONTEXT_REGION"])?;
        one_of("runtime", &texts.runtime, &["PMIX", "PMI2", "NONE"])?;
        let memory = match texts.memory.to_ascii_lowercase().as_str() {
            "" => 0,
            "volatile" => 1,
            "persistent" => 2,
            _ => return Err(wrong("fam_default_memory_type", &texts.memory, "volatile, persistent")),
        };
        if !texts.consumers.parse::<u32>().is_ok_and(|count| count > 0) {
            return Err(wrong("numConsumer", &texts.consumers, "a number from 1 on"));
        }
        let port = texts.port.parse().ok().filter(|port| *port != 0);
        let port = port.ok_or_else(|| wrong("grpcPort", &texts.port, "1 to 65535"))?;
        let keeper = Address { host: texts.server.clone(), port };
        let runtime = if texts.runtime == "NONE" { Runtime::None } else { Runtime::Launcher };
        let is_shared = texts.model == "shared_memory";
        Ok(Self { texts, keeper, runtime, memory, is_shared })
    }

    /// The value of an option.
    ///
    /// # Errors
    /// [`FamError::Invalid`]: there is no such option.
    pub fn value(&self, name: &str, pe: u32, pes: u32, buffer: (usize, u64)) -> Result<Value> {
        let texts = &self.texts;
        let text = match name {
            "VERSION" => VERSION,
            "DEFAULT_REGION_NAME" => &texts.region,
            "CIS_SERVER" => &texts.server,
            "GRPC_PORT" => &texts.port,
            "LIBFABRIC_PROVIDER" => &texts.provider,
            "FAM_THREAD_MODEL" => &texts.threads,
            "CIS_INTERFACE_TYPE" => &texts.interface,
            "OPENFAM_MODEL" => &texts.model,
            "FAM_CONTEXT_MODEL" => &texts.contexts,
            "PE_COUNT" => return Ok(Value::Number(pes as i32)),
            "PE_ID" => return Ok(Value::Number(pe as i32)),
            "RUNTIME" => &texts.runtime,
            "NUM_CONSUMER" => &texts.consumers,
            "FAM_DEFAULT_MEMORY_TYPE" => &texts.memory,
            "IF_DEVICE" => &texts.device,
            "LOC_BUF_ADDR" => return Ok(Value::Text(format!("{:#x}", buffer.0))),
            "LOC_BUF_SIZE" => return Ok(Value::Size(buffer.1)),
            _ => return Err(FamError::Invalid.because(format!("there is no option {name}"))),
        };
        Ok(Value::Text(text.to_owned()))
    }
}

/// The thread model of the file in the words of the program.
fn thread_model(file: &str) -> Result<String> {
    match file {
        "" => Ok(String::new()),
        "single" => Ok("FAM_THREAD_SERIALIZE".to_owned()),
        "multiple" => Ok("FAM_THREAD_MULTIPLE".to_owned()),
        other => Err(wrong("FamThreadModel of fam_pe_config.yaml", other, "single, multiple")),
    }
}

fn wrong(name: &str, value: &str, valid: &str) -> crate::error::Failure {
    FamError::Invalid.because(format!("{name} is \"{value}\"; valid: {valid}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pe(text: &str) -> Pe {
        Pe::parse(text).expect("a file")
    }

    #[test]
    fn the_program_goes_before_the_file_and_the_file_before_the_default() {
        let plain = Options::new(Texts::default(), &Pe::default()).expect("defaults");
        assert_eq!(plain.keeper.to_string(), "127.0.0.1:8787");
        assert_eq!((plain.runtime, plain.memory, plain.is_shared), (Runtime::Launcher, 0, false));
        let value = |options: &Options, name: &str| options.value(name, 3, 4, (0x10, 5)).expect(name);
        let defaults = [
            ("VERSION", "3.2.0"),
            ("LIBFABRIC_PROVIDER", "sockets"),
            ("FAM_THREAD_MODEL", "FAM_THREAD_SERIALIZE"),
            ("CIS_INTERFACE_TYPE", "rpc"),
            ("OPENFAM_MODEL", "memory_server"),
            ("FAM_CONTEXT_MODEL", "FAM_CONTEXT_DEFAULT"),
            ("RUNTIME", "PMIX"),
            ("NUM_CONSUMER", "1"),
            ("LOC_BUF_ADDR", "0x10"),
        ];
        for (name, text) in defaults {
            assert_eq!(value(&plain, name), Value::Text(text.to_owned()), "{name}");
        }
        assert_eq!(value(&plain, "PE_ID"), Value::Number(3));
        assert_eq!(value(&plain, "PE_COUNT"), Value::Number(4));
        assert_eq!(value(&plain, "LOC_BUF_SIZE"), Value::Size(5));
        for name in NAMES {
            value(&plain, name);
        }
        assert_eq!(plain.value("OTHER", 0, 1, (0, 0)).expect_err("none").error, FamError::Invalid);

        let file = pe("fam_client_interface_service_address: node7:9000\nFamThreadModel: multiple\n\
             openfam_model: shared_memory\nruntime: NONE\ndefault_memory_type: persistent\n");
        let filed = Options::new(Texts::default(), &file).expect("the file's");
        assert_eq!(filed.keeper.to_string(), "node7:9000");
        assert_eq!((filed.runtime, filed.memory, filed.is_shared), (Runtime::None, 2, true));
        assert_eq!(filed.texts.threads, "FAM_THREAD_MULTIPLE");
        let given = Texts { port: "1".to_owned(), runtime: "PMI2".to_owned(), ..Texts::default() };
        let both = Options::new(given, &file).expect("both");
        assert_eq!((both.keeper.to_string().as_str(), both.runtime), ("node7:1", Runtime::Launcher));
    }

    #[test]
    fn a_value_that_is_none_is_named() {
        type Member = fn(&mut Texts) -> &mut String;
        let wrong: [(Member, &str, &str); 8] = [
            (|texts| &mut texts.threads, "FAM_THREAD_MANY", "famThreadModel"),
            (|texts| &mut texts.interface, "grpc", "cisInterfaceType"),
            (|texts| &mut texts.model, "none", "openFamModel"),
            (|texts| &mut texts.contexts, "x", "famContextModel"),
            (|texts| &mut texts.runtime, "MPI", "runtime"),
            (|texts| &mut texts.memory, "paper", "fam_default_memory_type"),
            (|texts| &mut texts.consumers, "0", "numConsumer"),
            (|texts| &mut texts.port, "65536", "grpcPort"),
        ];
        for (member, value, name) in wrong {
            let mut texts = Texts::default();
            *member(&mut texts) = value.to_owned();
            let failure = Options::new(texts, &Pe::default()).expect_err(name);
            assert!(failure.error == FamError::Invalid && failure.text.starts_with(name), "{}", failure.text);
        }
        assert!(Options::new(Texts::default(), &pe("FamThreadModel: some\n")).is_err());
    }
}
