CREATE TABLE users (id bigserial PRIMARY KEY, email varchar(100) NOT NULL UNIQUE);
INSERT INTO users (email) VALUES ('a@b'), ('c@d');
