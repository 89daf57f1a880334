//! The CHECK of a table: how a server shows it, and the statement that replaces it.

use crate::adoption::{Definition, Renewal};

/// Checks that earlier programs put on a text, as [`plain`] has them.
const FORMER: [&str; 2] = ["json_validjson", "jsonlike'{\"%}'orjson_validjson"];

pub(super) fn show(table: &str) -> String {
    format!("SHOW CREATE TABLE `{table}`")
}

/// A check that is unknown for a row lets it pass.
pub(super) fn breaking(renewal: &Renewal) -> String {
    let Renewal { table, condition, .. } = renewal;
    format!("SELECT `uid`, `namespace`, `name` FROM `{table}` WHERE ({condition}) IS FALSE ORDER BY `seq`")
}

/// A check as a server tells it.
#[derive(Debug, PartialEq, Eq)]
struct LiveCheck<'a> {
    /// `None` for that of a column, which MariaDB keeps with the column.
    name: Option<&'a str>,
    plain: String,
}

/// Decides what a table needs; `None` where nothing is lacking. Checks of others stay.
pub(super) fn renewal(live: &str, wanted: &Definition<'_>) -> Option<Renewal> {
    let (constraint, name, condition) = wanted.constraints.iter().find_map(|text| {
        let LiveCheck { name, .. } = check_of(text)?;
        Some((*text, name?, condition_of(text)?))
    })?;
    let live: Vec<LiveCheck<'_>> = live.lines().filter_map(check_of).collect();
    let is_wanted = |check: &&LiveCheck<'_>| check.name == Some(name) && check.plain == plain(condition);
    if live.iter().any(|check| is_wanted(&check)) && !live.iter().any(is_former) {
        return None;
    }
    let mut clauses = Vec::new();
    for check in &live {
        match check.name {
            Some(found) if found == name || is_former(check) => clauses.push(format!("DROP CONSTRAINT `{found}`")),
            None if is_former(check) => {
                let column = wanted.columns.iter().find(|column| column.name == "json")?;
                clauses.push(format!("MODIFY COLUMN {}", column.text));
            }
            Some(_) | None => {}
        }
    }
    clauses.push(format!("ADD {constraint}"));
    Some(Renewal {
        table: wanted.table.to_owned(),
        sql: format!("ALTER TABLE `{}`\n    {}", wanted.table, clauses.join(",\n    ")),
        condition: condition.to_owned(),
    })
}

fn is_former(check: &LiveCheck<'_>) -> bool {
    FORMER.contains(&check.plain.as_str())
}

/// The check in a line of a statement that creates a table.
fn check_of(line: &str) -> Option<LiveCheck<'_>> {
    let line = line.trim();
    let plain = plain(condition_of(line)?);
    match line.strip_prefix("CONSTRAINT `") {
        Some(rest) => Some(LiveCheck {
            name: Some(rest.split_once('`')?.0),
            plain,
        }),
        None => line.starts_with("`json` ").then_some(LiveCheck { name: None, plain }),
    }
}

/// What stands between the brackets of a check.
fn condition_of(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once(" CHECK (")?;
    let (condition, _) = rest.rsplit_once(')')?;
    Some(condition)
}

/// A condition without what servers spell differently: brackets, spaces, quotes of names, the character sets of texts,
/// and MySQL's comparison of a flag with 0.
fn plain(condition: &str) -> String {
    let spelled: String = condition
        .chars()
        .filter(|c| !matches!(c, '(' | ')' | '`' | '\\') && !c.is_whitespace())
        .collect();
    spelled.to_lowercase().replace("_utf8mb4'", "'").replace("0<>", "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mysql::adoption::definition::definitions;

    const OURS: &str = "CREATE TABLE IF NOT EXISTS `model` (\n    `json` LONGTEXT NOT NULL,\n    \
        `content_hash` BINARY(32),\n    PRIMARY KEY (`seq`),\n    \
        CONSTRAINT `model_json` CHECK (LEFT(`content_hash`, 16) <=> UNHEX(LEFT(SHA2(`json`, 256), 32)) OR \
        JSON_VALID(`json`))\n) ENGINE=InnoDB;\n";

    fn needed(live: &str) -> Option<String> {
        let wanted = definitions(OURS).expect("readable");
        renewal(live, &wanted[0]).map(|renewal| renewal.sql)
    }

    #[test]
    fn the_check_of_a_new_table_is_known_in_the_words_of_both_servers() {
        let mariadb = "  `json` longtext NOT NULL,\n  CONSTRAINT `model_json` CHECK (left(`content_hash`,16) <=> \
            unhex(left(sha2(`json`,256),32)) or json_valid(`json`))\n) ENGINE=InnoDB";
        let mysql = "  `json` longtext COLLATE utf8mb4_bin NOT NULL,\n  CONSTRAINT `model_json` CHECK \
            (((left(`content_hash`,16) <=> unhex(left(sha2(`json`,256),32))) or (0 <> json_valid(`json`))))\n)";
        assert_eq!(needed(mariadb), None);
        assert_eq!(needed(mysql), None);
    }

    #[test]
    fn a_former_check_gives_way_and_that_of_others_stays() {
        let new = "ADD CONSTRAINT `model_json` CHECK (LEFT(`content_hash`, 16) <=> \
            UNHEX(LEFT(SHA2(`json`, 256), 32)) OR JSON_VALID(`json`))";
        let mariadb = "  `json` longtext NOT NULL CHECK (`json` like '{\"%}' or json_valid(`json`)),\n  \
            CONSTRAINT `short` CHECK (`name` <> 'x')";
        let expected = format!("ALTER TABLE `model`\n    MODIFY COLUMN `json` LONGTEXT NOT NULL,\n    {new}");
        assert_eq!(needed(mariadb), Some(expected));
        let mysql = "  CONSTRAINT `model_chk_1` CHECK (((`json` like _utf8mb4'{\\\"%}') or \
            (0 <> json_valid(`json`)))),\n  CONSTRAINT `short` CHECK ((`name` <> _utf8mb4'x'))";
        let expected = format!("ALTER TABLE `model`\n    DROP CONSTRAINT `model_chk_1`,\n    {new}");
        assert_eq!(needed(mysql), Some(expected));
        let edited = "  CONSTRAINT `model_json` CHECK (json_valid(`json`) or `name` = 'x')";
        let expected = format!("ALTER TABLE `model`\n    DROP CONSTRAINT `model_json`,\n    {new}");
        assert_eq!(needed(edited), Some(expected));
        assert_eq!(
            needed("  `json` longtext NOT NULL"),
            Some(format!("ALTER TABLE `model`\n    {new}"))
        );
    }
}
