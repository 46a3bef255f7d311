package plugins

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
)

// NewNetworkOver returns a network that lies behind t.
func NewNetworkOver(t http.RoundTripper) *Network {
	n := NewNetwork(nil)
	n.client.Transport = t
	return n
}

// Trust has a network trust what a test's server is certified by, and nothing else.
func (n *Network) Trust(roots *x509.CertPool) {
	n.client.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: roots}
}
