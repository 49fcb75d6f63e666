package child

import (
	"slices"
	"strings"
	"testing"
)

// secrets are variables that people keep secrets in, and some that no list can know.
var secrets = []string{
	"INGOT_API_KEY=s3cret", "INGOT_KEY_PASSWORD=s3cret", "INGOT_SSH_KEY=s3cret", "INGOT_FUTURE=s3cret",
	"HF_TOKEN=s3cret", "HUGGING_FACE_HUB_TOKEN=s3cret", "MODELSCOPE_API_TOKEN=s3cret", "COSIGN_PASSWORD=s3cret",
	`DOCKER_AUTH_CONFIG={"auths":{"r.example":{"auth":"s3cret"}}}`, "REGISTRY_AUTH_FILE=/s3cret",
	"HTTPS_PROXY=http://user:s3cret@proxy.example:3128", "https_proxy=http://user:s3cret@proxy.example:3128",
	"ALL_PROXY=socks5://s3cret@proxy.example", "PIP_INDEX_URL=https://user:s3cret@packages.example/simple",
	"AWS_SECRET_ACCESS_KEY=s3cret", "AWS_SESSION_TOKEN=s3cret", "AZURE_CLIENT_SECRET=s3cret",
	"GOOGLE_APPLICATION_CREDENTIALS=/s3cret", "GH_TOKEN=s3cret", "GH_PAT=s3cret", "CI_JOB_JWT=s3cret",
	"PGPASSWORD=s3cret", "MYSQL_PWD=s3cret", "REDISCLI_AUTH=s3cret", "DATABASE_URL=postgres://u:s3cret@h/d",
	"OPENAI_API_KEY=s3cret", "OPENAI_APIKEY=s3cret", "ANTHROPIC_AUTH_TOKEN=s3cret", "TOKEN=s3cret", "SECRET=s3cret",
	"SSH_AUTH_SOCK=/s3cret", "KUBECONFIG=/s3cret", "VAULT_ADDR=https://s3cret@vault.example", "SENTRY_DSN=s3cret",
	"MY_OWN_NAME=s3cret", "x=s3cret", "hf_token=s3cret", "SOME_TOKENS=s3cret", "LC_SECRET=s3cret", "LC_=s3cret",
	// They begin as what children need.
	"NVIDIA_API_KEY=s3cret", "SLURM_JWT=s3cret", "CUDA_LICENSE=s3cret", "MLX_TOKEN=s3cret", "OMP_PASSWD=s3cret",
	"OMPI_MCA_auth_cookie=s3cret", "MKL_Credentials=s3cret", "PATH_TO_KEY=s3cret", "PYTHON_KEYRING_PASS=s3cret",
	"NIX_REMOTE=https://user:s3cret@nix.example", "TMPDIR=ftp://user:s3cret@h/x", "MLX_HOSTFILE=http://s3cret@h/",
}

// needed are variables that kinds of children do not work without, somewhere.
var needed = map[Needs][]string{
	System: {
		"PATH=/bin", "HOME=/home/me", "LANG=C.UTF-8", "LC_ALL=C", "LC_CTYPE=C", "TMPDIR=/tmp", "TEMP=/t", "TMP=/t", "TZ=UTC",
		"SystemRoot=/w", "LD_LIBRARY_PATH=/lib", "LD_PRELOAD=/lib/x.so", "MALLOC_ARENA_MAX=2",
	},
	Model: {
		"PATH=/bin", "INGOT_HOME=/h", "INGOT_CACHE=/c", "INGOT_ENGINE=/e", "INGOT_CPU_THREADS=1", "INGOT_TRUST=/x",
		"INGOT_NO_SYNC=1", "CUDA_VISIBLE_DEVICES=0", "NVIDIA_VISIBLE_DEVICES=all", "OMP_NUM_THREADS=2", "MLX_RANK=1",
		"MLX_HOSTFILE=/hosts", "MLX_MPI_LIBNAME=libmpi.so", "OMPI_COMM_WORLD_RANK=1", "PMIX_RANK=1", "GOMEMLIMIT=1GiB",
		"PMIX_SERVER_URI41=prterun-host-7@0;tcp4://127.0.0.1:7711", "SLURM_PROCID=1", "LD_LIBRARY_PATH=/lib", "HOME=/home/me",
	},
	Tool: {
		"PATH=/bin", "CXX=/bin/g++ -pipe", "CPATH=/include", "SDKROOT=/sdk", "INGOT_PYTHON=/bin/python3",
		"NIX_CFLAGS_COMPILE=-isystem /x", "CCACHE_DIR=/c", "VIRTUAL_ENV=/v", "PYTHONNOUSERSITE=1", "PYENV_ROOT=/p",
	},
}

func TestAllowed(t *testing.T) {
	for needs, want := range needed {
		all := slices.Concat(secrets, want, secrets)
		got := Allowed(all, needs)
		if !slices.Equal(got, want) {
			t.Errorf("kind %d gets\n%s\nwant\n%s", needs, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if strings.Contains(strings.Join(Command(t.Context(), got, "x").Env, "\n"), "s3cret") {
			t.Errorf("kind %d gets a secret", needs)
		}
	}
	if got := Allowed([]string{"CXX=g++", "CUDA_HOME=/c", "A=b"}, System); len(got) != 0 {
		t.Errorf("a program of the system gets %v", got)
	}
}

// TestAllowedMore passes what the user names, as it is.
func TestAllowedMore(t *testing.T) {
	given := []string{"A=1", "B=http://user:pass@h/", "C=3", EnvMore + "=A, B,,D", "AB=4"}
	for needs := range needed {
		got := slices.DeleteFunc(Allowed(given, needs), func(v string) bool { return strings.HasPrefix(v, EnvMore) })
		if want := given[:2]; !slices.Equal(got, want) {
			t.Errorf("kind %d gets %v, want %v", needs, got, want)
		}
	}
}
