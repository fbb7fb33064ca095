-- Creates the role of the service. It is no superuser: PostgreSQL exempts superusers from row-level
-- security. The postgres image runs this file when it creates its volume. For a volume that is older
-- than this file, run it yourself; it may run again:
--
--   docker compose exec postgres psql -U howsure -f /docker-entrypoint-initdb.d/service_role.sql howsure
\set ON_ERROR_STOP on
\getenv password POSTGRES_PASSWORD
\if :{?password}
\else
  \set password `cat /secrets/POSTGRES_PASSWORD`
\endif
BEGIN;
SELECT 'CREATE ROLE howsure_service'
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'howsure_service') \gexec
ALTER ROLE howsure_service LOGIN NOSUPERUSER NOBYPASSRLS PASSWORD :'password';

-- The service upgrades its schema, so its role owns the database and what is in it.
SELECT format('ALTER DATABASE %I OWNER TO howsure_service', current_database()) \gexec
ALTER SCHEMA public OWNER TO howsure_service;
SELECT format('ALTER TABLE %s OWNER TO howsure_service', oid::regclass)
FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' \gexec
SELECT format('ALTER ROUTINE %s OWNER TO howsure_service', oid::regprocedure)
FROM pg_proc WHERE pronamespace = 'public'::regnamespace \gexec

-- The service knows the password above. The superuser logs in without one, inside the container only.
ALTER ROLE CURRENT_USER PASSWORD NULL;
COMMIT;
