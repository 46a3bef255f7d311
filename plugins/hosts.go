package plugins

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
)

// checkHosts holds the hosts of a manifest against what may be listed: "ha.local:8123", "*.example.org", "192.168.1.7",
// "[fd00::1]:80". Without a port it is that of http or https.
func checkHosts(hosts []string) error {
	if len(hosts) > maxHosts {
		return fmt.Errorf("%d hosts, the most are %d", len(hosts), maxHosts)
	}
	for i, h := range hosts {
		host, port := splitHost(h)
		name := strings.TrimPrefix(host, "*.")
		_, err := netip.ParseAddr(name)
		switch {
		case port != "" && !portPattern.MatchString(port):
			return fmt.Errorf("[%d] %q: the port is not a number from 1 to 65535", i, h)
		case err == nil && name == host:
		case !hostPattern.MatchString(name):
			return fmt.Errorf("[%d] %q: write a host, such as ha.local:8123 or *.example.org", i, h)
		case name != host && !strings.Contains(name, "."):
			return fmt.Errorf("[%d] %q: that would be nearly everything", i, h)
		}
	}
	return nil
}

const maxHosts = 32

var (
	hostPattern = regexp.MustCompile(`^(?i)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*$`)
	portPattern = regexp.MustCompile(`^[1-9][0-9]{0,4}$`)
)

// splitHost parts a host from its port, which may be missing.
func splitHost(s string) (host, port string) {
	if h, p, err := net.SplitHostPort(s); err == nil {
		return strings.ToLower(h), p
	}
	return strings.ToLower(strings.Trim(s, "[]")), ""
}

// listed reports whether a URL's host is one of those in a manifest.
func listed(hosts []string, u *url.URL) bool {
	usual := map[string]string{"http": "80", "https": "443"}[u.Scheme]
	host, port := strings.ToLower(u.Hostname()), u.Port()
	if port == "" {
		port = usual
	}
	for _, h := range hosts {
		name, p := splitHost(h)
		if p == "" {
			p = usual
		}
		if p != port {
			continue
		}
		if domain, ok := strings.CutPrefix(name, "*"); host == name || ok && strings.HasSuffix(host, domain) && host != domain[1:] {
			return true
		}
	}
	return false
}
