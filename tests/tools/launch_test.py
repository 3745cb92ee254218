#!/usr/bin/env python3
"""Several processes that train or translate together, as people start them: on this machine, and on hosts in network
namespaces that the test makes itself. CALQUE_KILLS=20 kills a rank more often than the two times of a quick test;
CALQUE_LONG=1 runs what takes longer: hosts behind a real sshd (which CALQUE_SSHD may name) among it."""
import os
import pathlib
import random
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

CALQUE = os.environ["CALQUE"]
ROOT = pathlib.Path(__file__).resolve().parents[2]
LONG = os.environ.get("CALQUE_LONG", "") not in ("", "0")
KILLS = int(os.environ.get("CALQUE_KILLS", "2"))
CONFIG = f"""
data:
  train: {ROOT}/data/everyday/natural-train.tsv
  valid: {ROOT}/data/everyday/natural-test.tsv
tokenizer: {{path: {ROOT}/tests/golden/tokenizer/bpe.model}}
model: {{layers: 2, hidden_size: 64, heads: 2, mlp_size: 128, context_length: 300, init_embeddings: cooccurrence}}
train: {{batch_tokens: 1024, steps: 120, warmup_steps: 10, learning_rate: 3e-3, validate_every: 60, checkpoint_every: 20,
        validate_sentences: 10, log_every: 20, threads: 1, precision: float32}}
distributed: {{timeout_seconds: 4}}
"""


class Lab(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="calque-launch-"))
        (cls.folder / "c.yaml").write_text(CONFIG)
        cls.launch("-n", "2", "train", "c.yaml", "run=whole")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    @classmethod
    def start(cls, *words, environment=None):
        return subprocess.Popen([CALQUE, *words], cwd=cls.folder, env={**os.environ, **(environment or {})}, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    @classmethod
    def launch(cls, *words, code=0):
        process = cls.start("launch", *words)
        out, err = process.communicate(timeout=180)
        assert process.returncode == code, f"exit {process.returncode}, expected {code}: {err}"
        return out, err

    def start_ranks(self, *commands, programs=None, environment=None, folders=None):
        """Each rank with a command line of its own, as no launcher would do it. Returns their exit codes and messages."""
        port = str(random.Random().randrange(20000, 30000))
        processes = []
        for rank, words in enumerate(commands):
            variables = {"RANK": str(rank), "WORLD_SIZE": str(len(commands)), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port,
                         "CALQUE_START_SECONDS": "30", **(environment or {})}
            processes.append(subprocess.Popen([programs[rank] if programs else CALQUE, *words], text=True, env={**os.environ, **variables},
                                              cwd=folders[rank] if folders else self.folder, stdin=subprocess.DEVNULL,
                                              stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        messages = [process.communicate(timeout=90)[1] for process in processes]
        return [process.returncode for process in processes], messages

    def weights(self, run, checkpoint="step-120"):
        return (self.folder / "runs" / run / "checkpoints" / checkpoint / "model.safetensors").read_bytes()

    def ranks(self, run):
        """The processes of the ranks of a run, or of all in this test's folder, as {rank: pid}."""
        found = {}
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                words = (folder / "cmdline").read_text().split("\0")
                environment = dict(one.split("=", 1) for one in (folder / "environ").read_text().split("\0") if "=" in one)
            except OSError:
                continue
            if (words[0] == CALQUE and (run is None or f"run={run}" in words) and "launch" not in words and "RANK" in environment
                    and os.path.realpath(folder / "cwd") == str(self.folder)):
                found[int(environment["RANK"])] = int(folder.name)
        return found

    def wait_for(self, run, path):
        end = time.monotonic() + 60
        while not (self.folder / "runs" / run / path).exists():
            self.assertLess(time.monotonic(), end, f"{run}: no {path}")
            time.sleep(0.05)


class LaunchTest(Lab):
    def test_a_killed_rank_ends_the_run_on_all_and_a_restart_ends_with_the_same_bits(self):
        rng = random.Random(1)
        for i in range(KILLS):
            run = f"killed-{i}"
            process = self.start("launch", "-n", "2", "--max-restarts", "1", "train", "c.yaml", f"run={run}")
            self.wait_for(run, "checkpoints/last" if i % 2 == 0 else "config.yaml")
            time.sleep(rng.uniform(0, 1.5))
            victim = rng.randrange(2)
            ranks = self.ranks(run)
            if victim in ranks:
                os.kill(ranks[victim], signal.SIGKILL)
            _, err = process.communicate(timeout=120)
            self.assertEqual(process.returncode, 0, err)
            if victim in ranks:
                self.assertIn(f"rank {victim}", err)
                self.assertIn("starting again with a world size of 2", err)
            self.assertEqual(self.weights(run), self.weights("whole"), run)

    def test_a_restart_after_fresh_continues_only_what_its_own_job_began(self):
        def attempt(restarts, *words):
            environment = {"RANK": "0", "WORLD_SIZE": "1", "TORCHELASTIC_RESTART_COUNT": str(restarts), "TORCHELASTIC_RUN_ID": "new"}
            process = self.start("train", "c.yaml", "run=old", "train.steps=20", *words, environment=environment)
            self.assertEqual(process.wait(timeout=60), 0, process.stderr.read())
            process.communicate()
            return (self.folder / "runs/old/run_id").read_text()

        process = self.start("train", "c.yaml", "run=old", "train.steps=20")  # by no launcher
        process.communicate(timeout=60)
        old = (self.folder / "runs/old/run_id").read_text()
        new = attempt(1, "--fresh")  # the first attempt died before it had deleted the old run
        self.assertNotEqual(new, old)
        self.assertEqual(attempt(2, "--fresh"), new)

    def test_a_rank_that_hangs_is_named_within_the_timeout(self):
        process = self.start("launch", "-n", "2", "train", "c.yaml", "run=hangs")
        self.wait_for("hangs", "checkpoints/step-20")
        stopped = self.ranks("hangs")[1]
        os.kill(stopped, signal.SIGSTOP)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1, err)
        self.assertRegex(err, rf"lost rank 1 \(.*process {stopped}\)")
        self.launch("-n", "2", "resume", "hangs")
        self.assertEqual(self.weights("hangs"), self.weights("whole"))

    def test_an_interrupt_saves_and_another_number_of_ranks_continues(self):
        process = self.start("launch", "-n", "2", "train", "c.yaml", "run=interrupted")
        self.wait_for("interrupted", "metrics.jsonl")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, err)
        self.assertIn("`calque resume interrupted` continues", err)
        _, err = self.launch("-n", "3", "resume", "interrupted")
        self.assertIn("done after step 120", err)

    def test_ranks_that_differ_are_refused_with_both_values(self):
        port = str(random.Random().randrange(20000, 30000))
        processes = []
        for rank, steps in enumerate(["60", "80"]):
            processes.append(self.start("train", "c.yaml", "run=differ", f"train.steps={steps}", environment={
                "RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}))
        for process in processes:
            _, err = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 2, err)
            self.assertRegex(err, r"train.steps: 60 on rank 0 .*, but 80 on rank 1")
        self.assertFalse((self.folder / "runs/differ").exists())

    def test_an_error_on_one_rank_ends_all_with_its_message(self):
        _, err = self.launch("-n", "2", "train", "c.yaml", "run=whole", code=2)
        self.assertIn("runs/whole: this run exists already", err)
        _, err = self.launch("-n", "2", "train", "c.yaml", "run=new", "train.batch_tokens=50", code=2)
        self.assertIn("train.batch_tokens=50 is too small", err)
        _, err = self.launch("-n", "2", "explore", code=2)
        self.assertIn("`calque explore` runs in one process", err)
        _, err = self.launch("--hosts", "a:0", "train", "c.yaml", code=2)
        self.assertIn('"a:0": expected HOST or HOST:PROCESSES', err)

    def test_translations_and_scores_are_those_of_one_process(self):
        sentences = [line.split("\t")[0] for line in (ROOT / "data/everyday/test.tsv").read_text().splitlines()]
        lines = [sentences[i % len(sentences)] for i in range(2 * 256 + 70)]  # two blocks of two ranks; the second is not full
        lines[5:7] = ["", "  "]
        (self.folder / "in.fr").write_text("\n".join(lines) + "\n")
        (self.folder / "short.fr").write_text("\n".join(lines[:60]) + "\n")

        def same(ranks, file, *words):
            one = self.launch("-n", "1", "translate", "whole", file, *words)[0]
            self.assertGreater(len(one), 1000)
            self.assertEqual(self.launch("-n", ranks, "translate", "whole", file, *words)[0], one, (ranks, words))

        same("2", "in.fr", "--beam", "1")
        same("3", "short.fr", "--json")
        same("2", "short.fr", "--precision", "int8", "--nbest", "3", "--beam", "4", "--scores")
        same("3", "short.fr", "--sample", "--seed", "3")
        for ranks in ("1", "2"):
            self.launch("-n", ranks, "translate", "whole", "short.fr", "--beam", "1", "-o", f"out-{ranks}.en")
        self.assertEqual((self.folder / "out-1.en").read_bytes(), (self.folder / "out-2.en").read_bytes())
        self.assertEqual((self.folder / "out-2.en").read_text().count("\n"), 60)

    def test_an_evaluation_is_that_of_one_process(self):
        data = str(ROOT / "data/everyday/natural-test.tsv")
        scores, files = [], []
        for ranks in ("1", "2"):
            scores.append(self.launch("-n", ranks, "evaluate", "whole", "--data", data, "--again", "--beam", "2")[0].split("\n")[:5])
            files.append((self.folder / "runs/whole/evaluations/natural-test/hypotheses.txt").read_bytes())
        self.assertEqual(scores[0], scores[1])
        self.assertEqual(files[0], files[1])

    def test_ranks_with_other_models_settings_or_programs_are_refused(self):
        def refused(message, *commands, **options):
            codes, messages = self.start_ranks(*commands, **options)
            self.assertEqual(codes, [2] * len(commands), messages)
            for one in messages:
                self.assertRegex(one, message)

        self.launch("-n", "1", "train", "c.yaml", "run=other", "train.steps=2", "train.warmup_steps=1", "train.validate_every=2")
        (self.folder / "in.fr").write_text("Bonjour.\n")
        data = ["--data", str(ROOT / "data/everyday/natural-test.tsv")]
        refused("the model's weights, as a hash: [0-9a-f]{16} on rank 0 .*, but [0-9a-f]{16} on rank 1",
                ["translate", "whole", "in.fr"], ["translate", "other", "in.fr"])
        refused("--precision: float32 on rank 0 .*, but int8 on rank 1",
                ["evaluate", "whole", *data], ["evaluate", "whole", *data, "--precision", "int8"])
        refused("decode.beam: 4 on rank 0 .*, but 2 on rank 1", ["translate", "whole", "--beam", "4"], ["translate", "whole", "--beam", "2"])
        refused("command: translate on rank 0 .*, but evaluate on rank 1", ["translate", "whole"], ["evaluate", "whole", *data])
        refused("--fresh: given on rank 0 .*, but not given on rank 1",
                ["train", "c.yaml", "run=x", "--fresh"], ["train", "c.yaml", "run=x"])
        refused("train.overfit_batch: false on rank 0 .*, but true on rank 1",
                ["train", "c.yaml", "run=x"], ["train", "c.yaml", "run=x", "train.overfit_batch=true"])
        other = self.folder / "other-build"
        shutil.copy(CALQUE, other)
        with other.open("ab") as program:
            program.write(b"other code")
        refused("the build of calque: [0-9a-f]{16} on rank 0 .*, but [0-9a-f]{16} on rank 1",
                ["translate", "whole"], ["translate", "whole"], programs=[CALQUE, str(other)])
        refused("none: no such run or checkpoint", ["evaluate", "whole", *data], ["evaluate", "none", *data])

    def test_a_rank_that_does_not_come_is_named_in_time(self):
        process = self.start("translate", "whole", environment={"RANK": "0", "WORLD_SIZE": "2", "MASTER_PORT": "28731",
                                                                "MASTER_ADDR": "127.0.0.1", "CALQUE_START_SECONDS": "1"})
        _, err = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 1, err)
        self.assertIn("1 of 2 processes did not come within 1 seconds: rank 1", err)

    @unittest.skipUnless(LONG, "CALQUE_LONG=1 runs it")
    def test_a_translator_that_hangs_is_named_within_the_timeout(self):
        (self.folder / "long.fr").write_text("Le chat dort sur la chaise.\n" * 200000)
        process = self.start("launch", "-n", "2", "translate", "whole", "long.fr", "-o", "long.en",
                             environment={"CALQUE_TIMEOUT_SECONDS": "3"})
        time.sleep(4)
        found = {rank: pid for rank, pid in self.ranks(None).items()}
        os.kill(found[1], signal.SIGSTOP)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1, err)
        self.assertRegex(err, rf"lost rank 1 \(.*process {found[1]}\)")
        self.assertFalse((self.folder / "long.en").exists())

    def test_an_error_of_rank_0_ends_all(self):
        (self.folder / "one.fr").write_text("Bonjour.\n")
        _, err = self.launch("-n", "2", "translate", "whole", "one.fr", "-o", "/dev/null/none", code=2)
        self.assertIn("/dev/null", err)

    def test_torchrun_starts_it(self):
        program = subprocess.run(["python3", "-c", "import torch.distributed.run"], capture_output=True, text=True)
        if program.returncode != 0:
            self.skipTest("no torchrun: " + program.stderr.strip().splitlines()[-1])
        done = subprocess.run(["python3", "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone", "--no-python", CALQUE,
                               "train", "c.yaml", "run=torchrun"], cwd=self.folder, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.weights("torchrun"), self.weights("whole"))

    def test_mpirun_starts_it(self):
        if shutil.which("mpirun") is None:
            self.skipTest("no mpirun")
        words = ["mpirun", "-n", "2", CALQUE, "train", "c.yaml", "run=mpirun"]
        done = subprocess.run(words, cwd=self.folder, capture_output=True, text=True, timeout=120, env={
            **os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.weights("mpirun"), self.weights("whole"))

    def test_local_steps_train_and_continue(self):
        local = ["distributed.local_steps=20", "distributed.compress=bfloat16"]
        _, err = self.launch("-n", "2", "train", "c.yaml", "run=local", *local)
        self.assertIn("done after step 120", err)
        # Rounds of seven steps: everything happens at the end of the round in which it is due, and the last is shorter.
        _, err = self.launch("-n", "2", "train", "c.yaml", "run=odd", "distributed.local_steps=7")
        self.assertIn("step 63: validation loss", err)
        self.assertIn("done after step 120", err)


class HostsTest(Lab):
    """Two hosts in network namespaces, joined by a cable that can be cut."""
    names = ["calque-a", "calque-b"]

    @classmethod
    def setUpClass(cls):
        if os.geteuid() != 0 or shutil.which("ip") is None:
            raise unittest.SkipTest("hosts in network namespaces need root and iproute2")
        cls.remove_hosts()
        try:
            for name in cls.names:
                cls.ip("netns", "add", name)
            cls.ip("link", "add", "veth-a", "netns", "calque-a", "type", "veth", "peer", "name", "veth-b", "netns", "calque-b")
        except subprocess.CalledProcessError as error:
            cls.remove_hosts()
            raise unittest.SkipTest(f"no right to make network namespaces: {error.stderr.strip()}")
        for name in cls.names:
            side = name[-1]
            cls.ip("-n", name, "addr", "add", f"10.77.0.{1 if side == 'a' else 2}/24", "dev", f"veth-{side}")
            cls.ip("-n", name, "link", "set", f"veth-{side}", "up")
            cls.ip("-n", name, "link", "set", "lo", "up")
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        cls.remove_hosts()
        super().tearDownClass()

    @classmethod
    def ip(cls, *words):
        subprocess.run(["ip", *words], check=True, capture_output=True, text=True)

    @classmethod
    def remove_hosts(cls):
        for name in cls.names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)

    def across(self, *words):
        return ["--hosts", "calque-a,calque-b", "--remote-shell", "ip netns exec", "--address", "10.77.0.1", *words]

    def test_two_hosts_end_with_the_bits_of_two_processes_on_one(self):
        self.launch(*self.across("train", "c.yaml", "run=hosts"))
        self.assertEqual(self.weights("hosts"), self.weights("whole"))

    def test_a_slow_link_changes_nothing_but_the_time(self):
        def shape(*words):
            return subprocess.run(["tc", "-n", "calque-a", "qdisc", "add", "dev", "veth-a", *words], capture_output=True, text=True)

        limited = shape("root", "handle", "1:", "tbf", "rate", "50mbit", "burst", "64kb", "latency", "400ms")
        if limited.returncode:
            self.skipTest(f"no right to limit a link's rate: {limited.stderr.strip()}")
        self.addCleanup(self.ip, "netns", "exec", "calque-a", "tc", "qdisc", "del", "dev", "veth-a", "root")
        delayed = shape("parent", "1:1", "netem", "delay", "2ms")
        if delayed.returncode:
            print(f"the link is slow, but without a delay, which this kernel cannot make: {delayed.stderr.strip()}")
        self.launch(*self.across("train", "c.yaml", "run=slow"))
        self.assertEqual(self.weights("slow"), self.weights("whole"))

    def test_a_name_that_is_loopback_on_its_own_host_is_reached_from_the_other(self):
        # As in Debian's /etc/hosts. `ip netns exec` mounts these over it.
        folders = [pathlib.Path("/etc/netns") / name for name in self.names]
        if any(folder.exists() for folder in folders):
            self.skipTest("/etc/netns is in use")
        try:
            for folder, line in zip(folders, ["127.0.1.1 calque-a", "10.77.0.1 calque-a"]):
                folder.mkdir(parents=True)
                (folder / "hosts").write_text(f"127.0.0.1 localhost\n{line}\n")
            _, err = self.launch("--hosts", "calque-a,calque-b", "--remote-shell", "ip netns exec", "train", "c.yaml", "run=named")
        finally:
            for folder in folders:
                shutil.rmtree(folder, ignore_errors=True)
        self.assertIn("MASTER_ADDR=calque-a is 127.0.1.1 on this machine, which others cannot reach; it uses 10.77.0.1", err)
        self.assertEqual(self.weights("named"), self.weights("whole"))

    @unittest.skipUnless(LONG, "CALQUE_LONG=1 runs it")
    def test_an_interrupt_reaches_the_other_hosts(self):
        process = self.start("launch", *self.across("train", "c.yaml", "run=stopped"))
        self.wait_for("stopped", "metrics.jsonl")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, err)
        self.assertIn("`calque resume stopped` continues", err)

    @unittest.skipUnless(LONG, "CALQUE_LONG=1 runs it")
    def test_processes_of_other_hosts_end_with_their_launcher(self):
        process = self.start("launch", *self.across("train", "c.yaml", "run=orphans", "train.steps=100000"))
        self.wait_for("orphans", "metrics.jsonl")
        self.assertEqual(len(self.ranks("orphans")), 2)
        process.kill()
        process.communicate()
        end = time.monotonic() + 20
        while self.ranks("orphans"):
            self.assertLess(time.monotonic(), end, "still there")
            time.sleep(0.2)

    def test_a_cut_cable_ends_the_run_and_it_continues_once_it_is_mended(self):
        process = self.start("launch", *self.across("train", "c.yaml", "run=cut"))
        self.wait_for("cut", "checkpoints/step-20")
        self.ip("-n", "calque-a", "link", "set", "veth-a", "down")
        _, err = process.communicate(timeout=90)
        self.assertEqual(process.returncode, 1, err)
        self.assertRegex(err, r"rank 0 .* lost rank 1")
        self.ip("-n", "calque-a", "link", "set", "veth-a", "up")
        self.launch(*self.across("resume", "cut"))
        self.assertEqual(self.weights("cut"), self.weights("whole"))

    def test_a_host_that_is_gone_is_left_out_of_the_restart(self):
        self.ip("netns", "add", "calque-c")
        try:
            process = self.start("launch", "--hosts", "calque-a,calque-c", "--remote-shell", "ip netns exec",
                                 "--address", "10.77.0.1", "--max-restarts", "1", "train", "c.yaml", "run=gone")
            time.sleep(1)
        finally:
            self.ip("netns", "del", "calque-c")
        for folder in pathlib.Path("/proc").glob("[0-9]*"):  # it never reaches the first host
            try:
                if "RANK=1" in (folder / "environ").read_text().split("\0") and "run=gone" in (folder / "cmdline").read_text():
                    os.kill(int(folder.name), signal.SIGKILL)
            except OSError:
                continue
        _, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, err)
        self.assertIn("calque-c does not answer; going on without it", err)
        self.assertIn("starting again with a world size of 1", err)


@unittest.skipUnless(LONG, "CALQUE_LONG=1 runs it")
class SshTest(Lab):
    """Two hosts, both this one, behind a real sshd on loopback."""

    @classmethod
    def setUpClass(cls):
        sshd = os.environ.get("CALQUE_SSHD") or shutil.which("sshd", path=os.environ["PATH"] + ":/usr/sbin")
        if sshd is None or shutil.which("ssh") is None:
            raise unittest.SkipTest("no sshd; CALQUE_SSHD may name one")
        super().setUpClass()
        try:
            cls.serve(sshd)
        except Exception as error:
            super().tearDownClass()
            raise unittest.SkipTest(f"sshd does not start here: {error}")

    @classmethod
    def serve(cls, sshd):
        for key in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", cls.folder / key], check=True)
        port = random.Random().randrange(20000, 30000)
        (cls.folder / "sshd_config").write_text(f"Port {port}\nListenAddress 127.0.0.1\nHostKey {cls.folder}/host\nStrictModes no\n"
                                                f"AuthorizedKeysFile {cls.folder}/user.pub\nPidFile none\nUsePAM no\n"
                                                "PasswordAuthentication no\nPermitRootLogin prohibit-password\n")
        (cls.folder / "ssh_config").write_text(f"Host *\n Port {port}\n IdentityFile {cls.folder}/user\n IdentitiesOnly yes\n"
                                               f" UserKnownHostsFile {cls.folder}/known\n StrictHostKeyChecking no\n LogLevel ERROR\n")
        pathlib.Path("/run/sshd").mkdir(exist_ok=True)
        cls.server = subprocess.Popen([sshd, "-D", "-e", "-f", cls.folder / "sshd_config"], stderr=subprocess.PIPE, text=True)
        cls.shell = f"ssh -F {cls.folder}/ssh_config"
        for _ in range(50):
            time.sleep(0.1)
            if subprocess.run([*cls.shell.split(), "-o", "BatchMode=yes", "127.0.0.1", "true"], capture_output=True).returncode == 0:
                return
        cls.server.kill()
        raise RuntimeError(cls.server.communicate()[1])

    @classmethod
    def tearDownClass(cls):
        cls.server.terminate()
        cls.server.communicate()
        super().tearDownClass()

    def across(self, *words):
        return ["--hosts", "127.0.0.1,localhost", "--remote-shell", self.shell, "--port", str(random.Random().randrange(20000, 30000)), *words]

    def test_a_run_over_ssh_ends_with_the_bits_of_two_processes(self):
        self.launch(*self.across("train", "c.yaml", "run=ssh"))
        self.assertEqual(self.weights("ssh"), self.weights("whole"))

    def test_an_interrupt_saves_and_leaves_no_process(self):
        process = self.start("launch", *self.across("train", "c.yaml", "run=stopped"))
        self.wait_for("stopped", "metrics.jsonl")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, err)
        self.assertIn("`calque resume stopped` continues", err)
        self.assertEqual(self.ranks("stopped"), {})

    def test_a_launcher_that_is_killed_leaves_no_process(self):
        process = self.start("launch", *self.across("train", "c.yaml", "run=orphans", "train.steps=100000"))
        self.wait_for("orphans", "metrics.jsonl")
        process.kill()
        process.communicate()
        end = time.monotonic() + 20
        while self.ranks("orphans"):
            self.assertLess(time.monotonic(), end, "still there")
            time.sleep(0.2)

    def test_a_killed_rank_is_started_again_and_ends_with_the_same_bits(self):
        process = self.start("launch", "--max-restarts", "1", *self.across("train", "c.yaml", "run=again"))
        self.wait_for("again", "checkpoints/step-20")
        os.kill(self.ranks("again")[1], signal.SIGKILL)
        _, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, err)
        self.assertIn("starting again with a world size of 2", err)
        self.assertEqual(self.weights("again"), self.weights("whole"))


if __name__ == "__main__":
    unittest.main()
