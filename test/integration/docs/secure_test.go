package docs

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	certutil "k8s.io/client-go/util/cert"

	"github.com/paddock-scheduler/paddock/internal/localcluster"
	manifests "github.com/paddock-scheduler/paddock/manifests/config"
)

// startSecure starts another scheduler, a standby of the first one, that answers over TLS
// and authenticates readers with the API server. ca.crt has signed its certificate, which
// is valid for the name of the Service and for this machine.
func startSecure(ctx context.Context, bin string) error {
	const service = "yunikorn-service.yunikorn.svc"
	certificate, key, err := certutil.GenerateSelfSignedCertKey(service, []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return err
	}
	const place = "      managedProfiles: [yunikorn]\n"
	shipped := string(manifests.SecondScheduler)
	if n := strings.Count(shipped, place); n != 1 {
		return fmt.Errorf("the shipped configuration has %q %d times, want once", strings.TrimSpace(place), n)
	}
	authority, tlsKey := filepath.Join(suite.work, "ca.crt"), filepath.Join(suite.work, ".tls.key")
	config := filepath.Join(suite.work, ".secure.yaml")
	args := fmt.Sprintf("      restTLSCertFile: %q\n      restTLSKeyFile: %q\n      restAuthorization: Delegated\n", authority, tlsKey)
	if err := errors.Join(
		os.WriteFile(authority, certificate, 0o600), os.WriteFile(tlsKey, key, 0o600),
		os.WriteFile(config, []byte(strings.Replace(shipped, place, place+args, 1)), 0o600),
	); err != nil {
		return err
	}
	address, err := localcluster.FreeAddress()
	if err != nil {
		return err
	}
	suite.secure = "https://" + address
	_, err = suite.cluster.StartScheduler(ctx, localcluster.SchedulerOptions{
		Name: "secure", Binary: filepath.Join(bin, "scheduler"), Config: config, RESTAddress: address,
		User: localcluster.UserAdmin, LeaderElection: true, Args: patient,
	})
	return err
}
