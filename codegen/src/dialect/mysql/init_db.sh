# Creates Kindex's database and tables on a MySQL or MariaDB server. Can be run repeatedly: existing tables stay
# unchanged. The password is never on a command line.
set -euo pipefail

usage() {
    cat <<'USAGE'
Creates Kindex's database and its tables on a MySQL or MariaDB server.

Usage: bash init_db.sh [flags]

Flags, each with the equivalent variable:
  --host HOST            MYSQL_HOST           the server, default 127.0.0.1
  --port PORT            MYSQL_PORT           default 3306
  --user USER            MYSQL_USER           default root
  --password-file FILE   MYSQL_PASSWORD_FILE  a file with the password
                         MYSQL_PASSWORD       the password itself
  --ask-password                              prompt for the password
  --database NAME        MYSQL_DATABASE       overrides the name in the schema file
  --ssl-ca FILE          MYSQL_SSL_CA         use TLS, and trust only this CA
  --file FILE            SCHEMA_FILE          default: the schema file beside this script, or in the checkout
  --wait SECONDS         WAIT_SECONDS         how long to wait for the server, default 0
  --help

Exit codes: 0 all tables exist, 1 failure, 2 usage.

Examples:
  MYSQL_PASSWORD=… bash init_db.sh --host db --user kindex
  bash init_db.sh --host db --user kindex --password-file /run/secrets/mysql --wait 60
USAGE
}

say() { printf 'init_db: %s\n' "$1" >&2; }

fail() {
    say "error: $1"
    if (($# > 1)); then say "  hint: $2"; fi
    exit 1
}

misused() {
    say "error: $1"
    say '  hint: bash init_db.sh --help'
    exit 2
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
host=${MYSQL_HOST:-127.0.0.1}
port=${MYSQL_PORT:-3306}
user=${MYSQL_USER:-root}
password=${MYSQL_PASSWORD:-}
password_file=${MYSQL_PASSWORD_FILE:-}
database=${MYSQL_DATABASE:-}
ssl_ca=${MYSQL_SSL_CA:-}
file=${SCHEMA_FILE:-}
wait_seconds=${WAIT_SECONDS:-0}
ask=false

while (($# > 0)); do
    case $1 in
    --help)
        usage
        exit 0
        ;;
    --ask-password)
        ask=true
        shift
        continue
        ;;
    --password | --password=*)
        misused 'every user of the machine can read a command line: use MYSQL_PASSWORD or --password-file'
        ;;
    --host | --port | --user | --password-file | --database | --ssl-ca | --file | --wait)
        if (($# < 2)); then misused "$1 needs a value"; fi
        ;;
    *) misused "unknown flag $1" ;;
    esac
    case $1 in
    --host) host=$2 ;;
    --port) port=$2 ;;
    --user) user=$2 ;;
    --password-file) password_file=$2 ;;
    --database) database=$2 ;;
    --ssl-ca) ssl_ca=$2 ;;
    --file) file=$2 ;;
    --wait) wait_seconds=$2 ;;
    esac
    shift 2
done

if [[ ! $port =~ ^[0-9]+$ ]]; then misused "port $port is not a number"; fi
if [[ ! $wait_seconds =~ ^[0-9]+$ ]]; then misused "--wait $wait_seconds is not a number of seconds"; fi
if [[ -n $database && ! $database =~ ^[A-Za-z0-9_]+$ ]]; then
    misused "database $database: only letters, digits and underscores are allowed"
fi

client=''
for program in mariadb mysql; do
    if command -v "$program" >/dev/null; then
        client=$program
        break
    fi
done
if [[ -z $client ]]; then
    fail 'neither mariadb nor mysql is installed' 'apt-get install mariadb-client'
fi

is_mariadb=false
if [[ $("$client" --version) == *MariaDB* ]]; then is_mariadb=true; fi

if [[ -z $file ]]; then
    for candidate in "$here/ingester_schema.sql" "$here/mysql-init-schema.sql" \
        "$here/../../schema/ingester_schema.sql"; do
        if [[ -f $candidate ]]; then
            file=$candidate
            break
        fi
    done
fi
if [[ ! -r $file ]]; then
    fail "no schema file ${file:-beside $here}" 'name one with --file: schema/ingester_schema.sql of the checkout'
fi

if [[ -n $password_file ]]; then
    if [[ ! -r $password_file ]]; then fail "cannot read $password_file"; fi
    password=$(<"$password_file")
elif [[ $ask == true ]]; then
    read -rsp "Password of $user: " password </dev/tty
    printf '\n' >&2
fi

# A file that only this user can read, removed at the end.
umask 077
private=$(mktemp -d)
trap 'rm -rf "$private"' EXIT

quoted() {
    local text=$1
    text=${text//\\/\\\\}
    text=${text//\"/\\\"}
    printf '"%s"' "$text"
}

{
    printf '[client]\nhost=%s\nport=%s\nuser=%s\n' "$(quoted "$host")" "$port" "$(quoted "$user")"
    printf 'password=%s\nprotocol=tcp\ndefault-character-set=utf8mb4\n' "$(quoted "$password")"
    # MySQL's own client uses TLS if the server supports it. MariaDB's client needs the option.
    if [[ $is_mariadb == true ]]; then printf 'ssl\n'; fi
    if [[ -n $ssl_ca ]]; then printf 'ssl-ca=%s\n' "$(quoted "$ssl_ca")"; fi
    if [[ -n $ssl_ca && $is_mariadb == true ]]; then printf 'ssl-verify-server-cert\n'; fi
    if [[ -n $ssl_ca && $is_mariadb == false ]]; then printf 'ssl-mode=VERIFY_IDENTITY\n'; fi
} >"$private/client.cnf"

run_client() {
    "$client" --defaults-file="$private/client.cnf" --batch --skip-column-names "$@"
}

# A requested database name replaces the one in the file.
named=$(sed -n 's/^USE `\(.*\)`;$/\1/p' "$file" | head -n 1)
if [[ -z $named ]]; then
    fail "$file names no database" 'it should be schema/ingester_schema.sql, which has a line with USE'
fi
database=${database:-$named}
sed -e "s/^USE \`$named\`;\$/USE \`$database\`;/" \
    -e "s/^CREATE DATABASE IF NOT EXISTS \`$named\`;\$/CREATE DATABASE IF NOT EXISTS \`$database\`;/" \
    "$file" >"$private/schema.sql"

deadline=$((SECONDS + wait_seconds))
until run_client --execute 'SELECT 1' >/dev/null 2>"$private/answer"; do
    # 1045: the server responds, and denies access.
    if grep -q 'ERROR 1045' "$private/answer" || ((SECONDS >= deadline)); then
        fail "$host:$port as $user: $(<"$private/answer")" \
            'check --host, --port, --user and the password; --wait 60 waits for a server that is starting'
    fi
    say "waiting for $host:$port"
    sleep 2
done

tables=$(sed -n 's/^CREATE TABLE IF NOT EXISTS `\(.*\)` ($/\1/p' "$private/schema.sql")
list=$(printf "'%s'," $tables)
list=${list%,}
count=$(printf '%s\n' "$tables" | wc -l)

# Tables with the same names and other columns would go unnoticed, because only missing tables are created.
others=$(run_client --execute "SELECT table_name FROM information_schema.tables AS t
    WHERE table_schema = '$database' AND table_name IN ($list)
    AND EXISTS (SELECT 1 FROM information_schema.columns AS c WHERE c.table_schema = t.table_schema
        AND c.table_name = t.table_name AND c.column_name = 'delete_time')
    AND EXISTS (SELECT 1 FROM information_schema.columns AS c WHERE c.table_schema = t.table_schema
        AND c.table_name = t.table_name AND c.column_name = 'json')
    AND NOT EXISTS (SELECT 1 FROM information_schema.columns AS c WHERE c.table_schema = t.table_schema
        AND c.table_name = t.table_name AND c.column_name = 'content_hash')")
if [[ -n $others ]]; then
    fail "another program created these tables of $database: $(echo $others)" \
        'kindex migrate --adopt adopts them and keeps every row'
fi

run_client <"$private/schema.sql" || fail "$file failed" 'fix the error of the server, and run this again'

found=$(run_client --execute "SELECT COUNT(*) FROM information_schema.tables
    WHERE table_schema = '$database' AND table_name IN ($list)")
if [[ $found != "$count" ]]; then
    fail "only $found of $count tables exist in $database afterwards"
fi
say "$database on $host:$port has its $count tables"
