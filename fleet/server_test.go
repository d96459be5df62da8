package fleet

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memdiag/memdiag/fleet/clickhouse"
	"github.com/memdiag/memdiag/snapshot/heavytest"
)

// clickhouseServer is one of some real servers that a test starts, which are the shards of the cluster "shards".
type clickhouseServer struct {
	t       *testing.T
	dir     string
	http    string // its address
	command *exec.Cmd
	ended   chan struct{}
}

// startServers starts servers on free ports, with all their files in a folder of the test's.
func startServers(t *testing.T, n int) []*clickhouseServer {
	t.Helper()
	program, err := exec.LookPath("clickhouse-server")
	if err != nil {
		program, err = exec.LookPath("/usr/sbin/clickhouse-server") // which is in the path of root alone
	}
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("no clickhouse-server, which .ci/run installs")
		}
		t.Skip("no clickhouse-server: Debian's package of this name has one")
	}
	var servers []*clickhouseServer
	ports := freePorts(t, 3*n)
	shards := ""
	for i := range n {
		shards += fmt.Sprintf("<shard><replica><host>127.0.0.1</host><port>%d</port></replica></shard>", ports[3*i+1])
	}
	for i := range n {
		dir := t.TempDir()
		config := fmt.Sprintf(`<yandex>
<logger><level>warning</level><log>%[1]s/log</log><errorlog>%[1]s/errors</errorlog></logger>
<http_port>%[2]d</http_port><tcp_port>%[3]d</tcp_port><interserver_http_port>%[4]d</interserver_http_port><listen_host>127.0.0.1</listen_host>
<path>%[1]s/data/</path><tmp_path>%[1]s/tmp/</tmp_path><user_files_path>%[1]s/files/</user_files_path><users_config>%[1]s/users.xml</users_config>
<default_profile>default</default_profile><default_database>default</default_database><mark_cache_size>67108864</mark_cache_size>
<max_concurrent_queries>100</max_concurrent_queries><remote_servers><shards>%[5]s</shards><gone><shard><replica><host>127.0.0.1</host><port>1</port></replica></shard></gone></remote_servers>
</yandex>`, dir, ports[3*i], ports[3*i+1], ports[3*i+2], shards)
		const users = `<yandex>
<profiles><default><max_threads>2</max_threads></default></profiles>
<users>
<default><password></password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></default>
<guarded><password>it's &lt;secret&gt;</password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></guarded>
</users>
<quotas><default></default></quotas>
</yandex>`
		for name, text := range map[string]string{"config.xml": config, "users.xml": users} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		servers = append(servers, &clickhouseServer{t: t, dir: dir, http: fmt.Sprintf("127.0.0.1:%d", ports[3*i])})
	}
	for _, s := range servers {
		s.start(program)
	}
	for _, s := range servers {
		s.await()
	}
	return servers
}

// freePorts are ports at which nobody listens. They are below those that a system gives to whoever asks for any: one of these could
// be given away before the server listens there.
func freePorts(t *testing.T, n int) (ports []int) {
	t.Helper()
	for len(ports) < n {
		port := 10000 + rand.IntN(20000)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		_ = l.Close()
		if !slices.Contains(ports, port) {
			ports = append(ports, port)
		}
	}
	return ports
}

// eventually reports whether something is so within three minutes, in which also a busy machine stores a part.
func eventually(t *testing.T, is func() bool) bool {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

func (s *clickhouseServer) start(program string) {
	s.t.Helper()
	s.command = exec.Command(program, "--config-file="+filepath.Join(s.dir, "config.xml"))
	if err := s.command.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.ended = make(chan struct{})
	go func(command *exec.Cmd, ended chan struct{}) {
		_ = command.Wait() // it is killed
		close(ended)
	}(s.command, s.ended)
	s.t.Cleanup(s.kill)
}

func (s *clickhouseServer) kill() {
	_ = s.command.Process.Kill() // unless it has ended
	<-s.ended
}

// again starts it after it was killed.
func (s *clickhouseServer) again() {
	s.t.Helper()
	_ = os.Remove(filepath.Join(s.dir, "data", "status")) // its lock
	s.start(s.command.Path)
	s.await()
}

func (s *clickhouseServer) await() {
	s.t.Helper()
	answers := false
	eventually(s.t, func() bool {
		answer, err := http.Get("http://" + s.http + "/ping")
		if err == nil {
			answers = true
			_ = answer.Body.Close()
			return true
		}
		select {
		case <-s.ended:
			return true
		default:
			return false
		}
	})
	if answers {
		return
	}
	log, _ := os.ReadFile(filepath.Join(s.dir, "errors"))
	s.t.Fatalf("the server does not start: %s", log)
}

// chdbServer is a recent ClickHouse within Python, behind the same interface.
func chdbServer(t *testing.T) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), pythonWith(t, "chdb"), "testdata/chdb_server.py")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }) // it never ends by itself
	port, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return "127.0.0.1:" + strings.TrimSpace(port)
}

func addressOf(t *testing.T, hosts []string, rest string) *clickhouse.Address {
	t.Helper()
	a, err := clickhouse.Parse(clickhouse.Scheme+strings.Join(hosts, ",")+rest, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func hostsOf(servers []*clickhouseServer) (hosts []string) {
	for _, s := range servers {
		hosts = append(hosts, s.http)
	}
	return hosts
}

func initialized(t *testing.T, a *clickhouse.Address) {
	t.Helper()
	if err := InitServer(t.Context(), a); err != nil {
		t.Fatal(err)
	}
}

func pushed(t *testing.T, dir string, a *clickhouse.Address, want Pushed) {
	t.Helper()
	got, err := Push(t.Context(), dir, a, func(int, int) {})
	if err != nil || got != want {
		t.Fatalf("%+v, not %+v: %v", got, want, err)
	}
}

// answers are those to all questions, as the commands have them.
func answers(t *testing.T, s *Store) string {
	t.Helper()
	var out strings.Builder
	say := func(value any, err error) {
		text, other := json.MarshalIndent(value, "", " ")
		if err = errors.Join(err, other); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "%s\n", text)
	}
	say(s.Runs(), nil)
	leaks, err := s.Leaks(nil)
	if err == nil {
		err = s.Name(leaks)
	}
	say(leaks, err)
	for i := range leaks {
		say(s.Detail(leaks[i].Fingerprint))
	}
	for _, r := range s.Runs() {
		ranks, err := s.Ranks(r.ID)
		say(ranks, err)
		lines, err := s.lines(r.ID)
		say(fmt.Sprintf("%+v", lines), err)
	}
	say(s.Next())
	changes, before, after, err := s.Compare("c1", "c2")
	say([]any{changes, before, after}, err)
	changes, _, _, err = s.Compare("c2", "c1")
	say(changes, err)
	return out.String()
}

func answersAsTheFolder(t *testing.T, dir string, a *clickhouse.Address) {
	t.Helper()
	s, err := OpenServer(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	got, want := strings.Split(answers(t, s), "\n"), strings.Split(answers(t, opened(t, dir)), "\n")
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Fatalf("line %d: the server says\n%s\nthe folder\n%s", i, strings.Join(got[max(0, i-10):min(i+3, len(got))], "\n"), strings.Join(want[max(0, i-10):min(i+3, len(want))], "\n"))
		}
	}
}

// prunedAsTheFolder deletes March, and leaves a run that was added in April, whose clock was off.
func prunedAsTheFolder(t *testing.T, dir string, a *clickhouse.Address, inMarch int) {
	t.Helper()
	off := testRun{id: "ffffffff00000001", commit: "c2", ranks: 1, started: time.UnixMicro(1).UTC(), added: epoch.Add(41 * 24 * time.Hour)}
	added(t, dir, off)
	if _, err := AddToServer(t.Context(), a, off.tables()); err != nil {
		t.Fatal(err)
	}
	now, keep := epoch.Add(50*24*time.Hour), 20*24*time.Hour
	months, err := Months(t.Context(), a)
	if err != nil || len(months) != 2 {
		t.Fatalf("%v: %v", months, err)
	}
	march := months[0]
	if march.String() != "2026-03" || march.Runs != inMarch || march.Bytes == 0 || months[1].Runs != 1 || !march.Before(now, keep) || months[1].Before(now, keep) || march.Before(epoch, keep) {
		t.Errorf("%s: %d runs, %d bytes; %d runs", months, march.Runs, march.Bytes, months[1].Runs)
	}
	for range 2 { // the second one finds nothing
		if err := DropMonths(t.Context(), a, months[:1]); err != nil {
			t.Fatal(err)
		}
	}
	s := opened(t, dir)
	if err := s.Remove(s.Old(now, keep)); err != nil {
		t.Fatal(err)
	}
	answersAsTheFolder(t, dir, a)
	if months, err = Months(t.Context(), a); err != nil || len(months) != 1 {
		t.Errorf("%v: %v", months, err)
	}
}

// hostile names must stay names.
const hostile = "x'; DROP TABLE runs; --\\'\"`\x00\n\t\x1b[31m{}%s�"

// many are runs with all that questions ask for.
func many(t *testing.T) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "fleet")
	going := testRun{id: "bbbbbbbb00000001", commit: "c2", ranks: 4, prints: []string{"s1-a", "s1-d"}, growth: 3600, // so that rates are whole
		status: "unfinished", started: epoch.Add(2 * time.Hour), added: epoch.Add(48 * time.Hour)}
	tables := going.tables()
	for step := range 5 {
		for rank := range 4 {
			tables["series"].Append(going.id, rank, step, epoch.Add(time.Duration(step)*time.Minute), "cuda:0", 5*step*rank, 6, 7)
		}
	}
	tables["functions"].Append(going.id, "update", "train.py")
	strange := testRun{id: "cccccccc00000001", commit: hostile, ranks: 1, prints: []string{"s1-" + hostile, "s1-a"}, growth: 1 << 40, started: epoch.Add(40 * 24 * time.Hour)}
	added(t, dir, append(two, strange)...)
	if _, err := Add(dir, tables); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestAServerAnswersAsTheFolder(t *testing.T) {
	for name, start := range map[string]func(t *testing.T) []string{
		"recent": func(t *testing.T) []string {
			heavytest.Skip(t, "chDB takes 5 s")
			return []string{chdbServer(t)}
		},
		"old": func(t *testing.T) []string { return hostsOf(startServers(t, 1)) },
	} {
		t.Run(name, func(t *testing.T) {
			a := addressOf(t, start(t), "/fleet")
			_, err := OpenServer(t.Context(), a)
			if none := (*NoServerFleetError)(nil); !errors.As(err, &none) {
				t.Fatalf("%v", err)
			}
			initialized(t, a)
			dir := many(t)
			pushed(t, dir, a, Pushed{4, 0})
			pushed(t, dir, a, Pushed{0, 4})
			answersAsTheFolder(t, dir, a)

			// A run that is added again counts once, and runs that are merged stay what they are.
			again := two[0]
			again.growth, again.added, again.prints = 7200, epoch.Add(-time.Hour), []string{"s1-c", "s1-e"} // its clock is off
			added(t, dir, again)
			if _, err := Compact(dir, epoch); err != nil {
				t.Fatal(err)
			}
			initialized(t, a)
			pushed(t, dir, a, Pushed{1, 3})
			answersAsTheFolder(t, dir, a)

			// A run may be added without a folder, and again.
			direct := testRun{id: "eeeeeeee00000001", commit: "c2", ranks: 3, prints: []string{"s1-a", "s1-" + hostile}, growth: 7200}
			added(t, dir, direct)
			for _, growth := range []int64{3600, 7200} {
				direct.growth = growth
				if growth == 7200 {
					direct.commit = "" // it keeps the one that it has
				}
				if _, err := AddToServer(t.Context(), a, direct.tables()); err != nil {
					t.Fatal(err)
				}
			}
			answersAsTheFolder(t, dir, a)
			pushed(t, dir, a, Pushed{0, 5})
			prunedAsTheFolder(t, dir, a, 5)
		})
	}
}
