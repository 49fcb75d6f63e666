package ollama

import (
	"os"
	"testing"

	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/servertest"
)

func TestMain(m *testing.M) { os.Exit(servertest.Main(m)) }

// fixture is a server for tests, with this API.
type fixture struct {
	*servertest.Fixture
	api *api
}

func serve(t testing.TB, change func(*server.Options)) *fixture {
	t.Helper()
	f := &fixture{}
	f.Fixture = servertest.Serve(t, change, func(s *server.Server) server.API {
		f.api = newAPI(s)
		return f.api.describe()
	})
	return f
}
