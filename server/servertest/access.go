package servertest

import (
	"testing"

	"github.com/ingotml/ingot/server/guard"
)

// Access returns a pattern of hosts and one of origins; "": none.
func Access(t testing.TB, host, origin string) (guard.Hosts, guard.Origins) {
	t.Helper()
	list := func(pattern string) []string {
		if pattern == "" {
			return nil
		}
		return []string{pattern}
	}
	hosts, err := guard.ParseHosts(list(host))
	if err != nil {
		t.Fatal(err)
	}
	origins, err := guard.ParseOrigins(list(origin))
	if err != nil {
		t.Fatal(err)
	}
	return hosts, origins
}
