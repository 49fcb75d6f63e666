package ranks

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLaunchers(t *testing.T) {
	file := func(text string) string {
		path := filepath.Join(t.TempDir(), "hosts.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	ring := file(`[["10.0.0.1:5000", "10.0.1.1:5000"], ["10.0.0.2:5000"], ["10.0.0.3:5000"]]`)
	type env = map[string]string
	for _, c := range []struct {
		env  env
		want Launched
		err  string
	}{
		{env{"MLX_RANK": "2", "MLX_HOSTFILE": ring}, Launched{"ring", 2, 3, "10.0.0.1"}, ""},
		{env{"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "4"}, Launched{"mpi", 0, 4, ""}, ""},
		{env{"SLURM_PROCID": "1", "SLURM_NTASKS": "2"}, Launched{"mpi", 1, 2, ""}, ""},
		{env{}, Launched{}, "needs a launcher"},
		{env{"MLX_RANK": "0"}, Launched{}, "needs a launcher"},
		{env{"MLX_RANK": "3", "MLX_HOSTFILE": ring}, Launched{}, "has 3 ranks"},
		{env{"MLX_RANK": "-1", "MLX_HOSTFILE": ring}, Launched{}, "has 3 ranks"},
		{env{"MLX_RANK": "0", "MLX_HOSTFILE": file(`{"hosts": []}`)}, Launched{}, "not a list of the addresses"},
		{env{"MLX_RANK": "0", "MLX_HOSTFILE": ring + "x"}, Launched{}, "no such file"},
		{env{"OMPI_COMM_WORLD_RANK": "4", "OMPI_COMM_WORLD_SIZE": "4"}, Launched{}, "not a rank"},
		{env{"SLURM_PROCID": "x", "SLURM_NTASKS": "2"}, Launched{}, "not a rank"},
	} {
		got, err := ReadLauncher(func(name string) string { return c.env[name] })
		switch {
		case c.err == "" && (err != nil || got != c.want):
			t.Errorf("%v: %+v, %v; want %+v", c.env, got, err, c.want)
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%v: %v, want %q", c.env, err, c.err)
		}
	}
}
