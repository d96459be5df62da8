// Package clickhouse asks ClickHouse servers and inserts into them: over HTTP, in blocks of columns in the format Native, which
// servers of all versions since 18.16 read and write alike.
package clickhouse

import (
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strings"
)

// Scheme begins an address.
const Scheme = "clickhouse://"

// Address is where the servers are, and the user who queries them.
type Address struct {
	Database string
	Cluster  string // "" for one server

	hosts          []string // with ports
	user, password string
	secure         bool
}

// AddressError is an address that names no server. It has no part of the address, which may hold a password.
type AddressError struct{ Reason string }

func (e *AddressError) Error() string { return "the server's address: " + e.Reason }

// Hint is the way out.
func (e *AddressError) Hint() string {
	return "write " + Scheme + "HOST:8123/DATABASE, with ?cluster=NAME for several servers and ?secure=true for TLS; CLICKHOUSE_USER and CLICKHOUSE_PASSWORD say who asks"
}

const (
	plainPort  = "8123"
	securePort = "8443"
	database   = "memdiag"
)

// identifier is what names of databases and clusters may be, so that they are safe in SQL.
var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`)

// Parse reads an address such as clickhouse://user@host1:8123,host2:8123/database?cluster=name. What it does not say of user and
// password is in the variables that ClickHouse's own client reads.
func Parse(text string, getenv func(string) string) (*Address, error) {
	rest, ok := strings.CutPrefix(text, Scheme)
	if !ok {
		return nil, &AddressError{"it does not begin with " + Scheme}
	}
	rest, query, _ := strings.Cut(rest, "?")
	authority, path, _ := strings.Cut(rest, "/")
	a := &Address{Database: strings.TrimSuffix(path, "/"), user: getenv("CLICKHOUSE_USER"), password: getenv("CLICKHOUSE_PASSWORD")}
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, &AddressError{"what follows ? is no list of settings"}
	}
	for name := range values {
		switch value := values.Get(name); name {
		case "cluster":
			if a.Cluster = value; !identifier.MatchString(value) {
				return nil, &AddressError{"a cluster's name has letters, digits, _ and - alone"}
			}
		case "secure":
			if a.secure = value == "true"; !a.secure && value != "false" {
				return nil, &AddressError{"secure is true or false"}
			}
		default:
			return nil, &AddressError{fmt.Sprintf("there is no such setting as %q; cluster and secure are", name)}
		}
	}
	if a.Database == "" {
		a.Database = database
	}
	if !identifier.MatchString(a.Database) {
		return nil, &AddressError{"a database's name has letters, digits, _ and - alone"}
	}
	if at := strings.LastIndex(authority, "@"); at >= 0 {
		if err := a.setUser(authority[:at]); err != nil {
			return nil, err
		}
		authority = authority[at+1:]
	}
	for host := range strings.SplitSeq(authority, ",") {
		if host, err = a.withPort(host); err != nil {
			return nil, err
		}
		a.hosts = append(a.hosts, host)
	}
	if len(a.hosts) > 1 && a.Cluster == "" {
		return nil, &AddressError{"several servers are a cluster; ?cluster=NAME says which, as remote_servers of their configuration calls it"}
	}
	return a, nil
}

func (a *Address) setUser(text string) error {
	user, password, given := strings.Cut(text, ":")
	var err error
	if a.user, err = url.PathUnescape(user); err == nil && given {
		a.password, err = url.PathUnescape(password)
	}
	if err != nil {
		return &AddressError{"user or password has a % that begins no escape; write it as %25"}
	}
	return nil
}

func (a *Address) withPort(host string) (string, error) {
	name, port, err := net.SplitHostPort(host)
	if err != nil { // no port
		name, port = strings.Trim(host, "[]"), plainPort
		if a.secure {
			port = securePort
		}
	}
	joined := net.JoinHostPort(name, port)
	if u, err := url.Parse("http://" + joined); err != nil || u.Host != joined || u.Hostname() == "" || u.Port() == "" {
		return "", &AddressError{"one of its hosts is none"}
	}
	return joined, nil
}

// String is the address without the password.
func (a *Address) String() string {
	text := Scheme
	if a.user != "" {
		text += url.PathEscape(a.user) + "@"
	}
	text += strings.Join(a.hosts, ",") + "/" + a.Database
	settings := make(url.Values)
	if a.Cluster != "" {
		settings.Set("cluster", a.Cluster)
	}
	if a.secure {
		settings.Set("secure", "true")
	}
	if len(settings) > 0 {
		text += "?" + settings.Encode()
	}
	return text
}

// Each is an address for each of the hosts.
func (a *Address) Each() []*Address {
	var out []*Address
	for i := range a.hosts {
		one := *a
		one.hosts = a.hosts[i : i+1]
		out = append(out, &one)
	}
	return out
}
