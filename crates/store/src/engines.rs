//! The engines by the names of their dialects, and by the addresses of their databases, which each engine's folder
//! reads and shows. No password comes into a text.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use sqlx::mysql::MySqlConnectOptions;

use crate::dialect::{Dialect, Spelling};
use crate::error::StoreError;
use crate::mysql::{self, MySqlFields, MySqlSpelling};
use crate::sqlite::{self, SqliteLocation, SqliteSpelling};

impl Dialect {
    /// All of them, in the order of their words.
    pub const ALL: [Self; 2] = [Self::MySql, Self::Sqlite];
}

/// The database of a store.
#[derive(Clone)]
pub enum Address {
    /// An embedded database.
    Sqlite(SqliteLocation),
    /// A MySQL or MariaDB server.
    MySql(Box<MySqlConnectOptions>),
}

impl Address {
    /// The word of its dialect, by which its text begins.
    pub fn dialect(&self) -> &'static str {
        let dialect = match self {
            Self::Sqlite(_) => Dialect::Sqlite,
            Self::MySql(_) => Dialect::MySql,
        };
        spelling(dialect).word()
    }

    /// The file that holds the database; `None` where no file is to be there before.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::Sqlite(place) => sqlite::address::file(place),
            Self::MySql(_) => None,
        }
    }

    /// The address of a server that the configuration describes field by field.
    pub fn mysql(fields: &MySqlFields) -> Self {
        Self::MySql(Box::new(mysql::address::options(fields)))
    }
}

impl FromStr for Address {
    type Err = StoreError;

    /// Reads `sqlite:PATH`, `sqlite::memory:` or `mysql://user:password@host:port/database?…`, where special characters
    /// are percent-encoded. An error of an option lists those that there are.
    fn from_str(text: &str) -> Result<Self, StoreError> {
        let of_sqlite = sqlite::address::parse(text).map(|place| place.map(Self::Sqlite));
        let of_mysql = || mysql::address::parse(text).map(|options| options.map(|it| Self::MySql(Box::new(it))));
        of_sqlite.or_else(of_mysql).unwrap_or_else(|| {
            Err(StoreError::Address(format!(
                "{:?} is not a known kind of database; write {} or {}",
                text.split(':').next().unwrap_or_default(),
                sqlite::address::FORM,
                mysql::address::FORM
            )))
        })
    }
}

/// Without the password.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&match self {
            Self::Sqlite(place) => sqlite::address::shown(place),
            Self::MySql(options) => mysql::address::shown(options),
        })
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

/// How an engine spells SQL, for who asks without a connection.
pub(super) fn spelling(dialect: Dialect) -> &'static dyn Spelling {
    match dialect {
        Dialect::MySql => &MySqlSpelling,
        Dialect::Sqlite => &SqliteSpelling,
    }
}

/// The dialect in which the identity of a query is written, the same for all engines: continue tokens outlive a
/// deployment.
pub(super) fn of_tokens() -> &'static dyn Spelling {
    &SqliteSpelling
}

#[cfg(test)]
mod tests {
    use kindex_model::value::Value;

    use super::*;

    #[test]
    fn reads_every_form_of_address() {
        for (text, shown) in [
            ("sqlite::memory:", "sqlite::memory:"),
            ("sqlite:a/b.db", "sqlite:a/b.db"),
            ("sqlite:///var/k.db", "sqlite:/var/k.db"),
            ("mysql://u:p%40%2F@h:3307/d", "mysql://u@h:3307/d"),
            ("mysql://u@h/d?ssl-mode=REQUIRED", "mysql://u@h:3306/d"),
        ] {
            let address: Address = text.parse().expect(text);
            assert_eq!(address.to_string(), shown);
        }
    }

    #[test]
    fn refuses_what_it_does_not_know() {
        for (text, hint) in [
            ("postgres://h/d", "mysql://user@host"),
            ("sqlite:", "sqlite:PATH"),
            ("mysql://h/d?sslmod=REQUIRED", "ssl-mode"),
            ("mysql://h/d?ssl-mode=PERHAPS", "PERHAPS"),
        ] {
            let error = text.parse::<Address>().expect_err(text).to_string();
            assert!(error.contains(hint), "{error}");
        }
    }

    #[test]
    fn a_password_is_never_shown() {
        for text in [
            "mysql://u:se?cret@h/d",
            "mysql://u:se#cret@h/d",
            "mysql://u:12#cret@h/d",
            "mysql://u:se/cret@h/d",
        ] {
            let error = text.parse::<Address>().expect_err(text).to_string();
            assert!(!error.contains("cret"), "{error}");
        }
        let address = Address::mysql(&MySqlFields {
            password: "@:/?#%s3cret".to_owned(),
            database: "d".to_owned(),
            ..MySqlFields::default()
        });
        assert_eq!(format!("{address:?}"), "Address(mysql://root@localhost:3306/d)");
    }

    #[test]
    fn no_bracket_and_no_parameter_is_left_over() {
        for dialect in Dialect::ALL {
            let spelled = spelling(dialect).spell("SELECT t.[key] FROM [thing] AS t WHERE t.[uid] IN (?,?)");
            assert!(!spelled.contains(['[', ']']), "{spelled}");
            let list = spelled.rsplit_once(" IN ").expect("the words stay").1;
            assert_eq!(list.split(',').count(), 2, "{spelled}");
        }
    }

    #[test]
    fn a_prepared_comparison_is_of_a_text_and_its_bytes() {
        for dialect in Dialect::ALL {
            let condition = spelling(dialect).exactly("name");
            assert!(condition.starts_with("[name] = ? AND "), "{condition}");
            assert_eq!(condition.matches('?').count(), 2, "{condition}");
        }
    }

    #[test]
    fn a_list_has_a_parameter_for_each_value() {
        for dialect in Dialect::ALL {
            let spelling = spelling(dialect);
            let condition = spelling.value_in("[uid]", 3);
            assert_eq!(condition.matches('?').count(), 3, "{condition}");
            let values = vec![Value::Int(1), Value::Int(2)];
            let condition = spelling.value_among("[uid]", values.clone());
            assert_eq!(condition.sql.matches('?').count(), 2, "{}", condition.sql);
            assert_eq!(condition.values, values);
        }
    }
}
