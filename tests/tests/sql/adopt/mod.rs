//! Databases that Michelangelo's own ingester made and filled, taken up by `Migrations::adopt` on
//! MariaDB and on MySQL.

mod fixture;

mod broken_off;
mod refused;
mod taken_up;
