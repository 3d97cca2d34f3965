-- PostgreSQL. Instants are UTC.
CREATE TABLE loan (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tool    text NOT NULL,
    member  text NOT NULL,
    days    integer NOT NULL CHECK (days > 0),
    lent_at timestamptz NOT NULL,
    back_at timestamptz
);
