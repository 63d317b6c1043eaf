package discovery

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
)

// Credentials are files, read again when they change: CA, Cert and Key in PEM form, and a token. Empty: none.
type Credentials struct {
	CA, Cert, Key, TokenFile string
}

// check refuses what can never work, and a token that others could read.
func (c Credentials) check(servers []string) error {
	if (c.Cert == "") != (c.Key == "") {
		return errors.New("a client certificate needs its key and the reverse: give both Cert and Key")
	}
	if c.TokenFile == "" || c.CA != "" || c.Cert != "" {
		return nil
	}
	for _, server := range servers {
		host, _, _ := net.SplitHostPort(server)
		if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return fmt.Errorf("the token would be sent to %s in plain text: give a CA for TLS", server)
		}
	}
	return nil
}

// identity is what the files hold. A file that cannot be used leaves the previous contents in force.
type identity struct {
	files Credentials
	mutex sync.Mutex
	token string
	pem   string // of CA, certificate and key, to notice that they changed
	made  credentials.TransportCredentials
}

func newIdentity(files Credentials) (*identity, error) {
	made := &identity{files: files, made: insecure.NewCredentials()}
	return made, made.read()
}

// current is what connections are made with; another version says that they must be made anew.
func (i *identity) current() (credentials.TransportCredentials, string) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	_ = i.read()
	return i.made, i.pem
}

// withToken adds the token to a call.
func (i *identity) withToken(ctx context.Context) context.Context {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	_ = i.read()
	if i.token == "" {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+i.token)
}

func (i *identity) read() error {
	if i.files.TokenFile != "" {
		text, err := os.ReadFile(i.files.TokenFile)
		if err != nil {
			return err
		}
		if token := strings.TrimSpace(string(text)); token != "" {
			i.token = token
		}
	}
	if i.files.CA == "" && i.files.Cert == "" {
		return nil
	}
	return i.readTLS()
}

func (i *identity) readTLS() error {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	contents := ""
	if i.files.CA != "" {
		text, err := os.ReadFile(i.files.CA)
		if err != nil {
			return err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return fmt.Errorf("%s contains no PEM certificate", i.files.CA)
		}
		contents += string(text)
	}
	if i.files.Cert != "" {
		cert, err := os.ReadFile(i.files.Cert)
		if err != nil {
			return err
		}
		key, err := os.ReadFile(i.files.Key)
		if err != nil {
			return err
		}
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			return fmt.Errorf("%s and %s: %w", i.files.Cert, i.files.Key, err)
		}
		config.Certificates = []tls.Certificate{pair}
		contents += string(cert)
	}
	if contents != i.pem {
		i.pem, i.made = contents, credentials.NewTLS(config)
	}
	return nil
}
