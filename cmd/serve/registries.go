package serve

import (
	"os"
	"strings"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/registry/address"
	"github.com/spf13/cobra"
)

// Variables with registries as host[:port],... They apply if the flags name none.
const (
	envInsecureRegistries = "INGOT_INSECURE_REGISTRIES"
	envPrivateRegistries  = "INGOT_PRIVATE_REGISTRIES"
)

// registryFlags list the registries that requests may name although they are in private networks, or access without
// certificate checks.
type registryFlags struct {
	insecureRegistries, privateRegistries []string
}

func (f *registryFlags) add(c *cobra.Command) {
	c.Flags().StringArrayVar(&f.insecureRegistries, "insecure-registry", nil,
		"`host` to allow insecure (default $"+envInsecureRegistries+")")
	c.Flags().StringArrayVar(&f.privateRegistries, "private-registry", nil,
		"private `host` to allow (default $"+envPrivateRegistries+")")
}

func (f registryFlags) registries() (insecure, private address.Hosts, err error) {
	for _, list := range []struct {
		flag, env string
		given     []string
		to        *address.Hosts
	}{
		{"insecure-registry", envInsecureRegistries, f.insecureRegistries, &insecure},
		{"private-registry", envPrivateRegistries, f.privateRegistries, &private},
	} {
		name, text := "--"+list.flag, strings.Join(list.given, ",")
		if len(list.given) == 0 {
			name, text = list.env, os.Getenv(list.env)
		}
		if *list.to, err = address.ParseHosts(text); err != nil {
			return nil, nil, cli.Usagef("%s: %v", name, err)
		}
	}
	return insecure, private, nil
}
