#!/usr/bin/env python3
"""Several processes that train or translate together, as people start them: on this machine, and on hosts in network
namespaces that the test makes itself. CALQUE_KILLS=20 kills a rank more often than the two times of a quick test."""
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
KILLS = int(os.environ.get("CALQUE_KILLS", "2"))
CONFIG = f"""
data:
  train: {ROOT}/data/everyday/natural-train.tsv
  valid: {ROOT}/data/everyday/natural-test.tsv
tokenizer: {{path: {ROOT}/tests/golden/tokenizer/bpe.model}}
model: {{layers: 2, hidden_size: 64, heads: 2, mlp_size: 128, context_length: 300}}
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

    def weights(self, run, checkpoint="step-120"):
        return (self.folder / "runs" / run / "checkpoints" / checkpoint / "model.safetensors").read_bytes()

    def ranks(self, run):
        """The processes of the ranks, as {rank: pid}."""
        found = {}
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                words = (folder / "cmdline").read_text().split("\0")
                environment = dict(one.split("=", 1) for one in (folder / "environ").read_text().split("\0") if "=" in one)
            except OSError:
                continue
            if words[0] == CALQUE and f"run={run}" in words and "launch" not in words and "RANK" in environment:
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
        lines = "\n".join(line.split("\t")[0] for line in
                          (ROOT / "data/everyday/test.tsv").read_text().splitlines()[:60]) + "\n"
        (self.folder / "in.fr").write_text(lines)
        one = subprocess.run([CALQUE, "translate", "whole", "in.fr", "--json"], cwd=self.folder, capture_output=True, text=True,
                             check=True).stdout
        several, _ = self.launch("-n", "3", "translate", "whole", "in.fr", "--json")
        self.assertEqual(several, one)
        self.launch("-n", "2", "translate", "whole", "in.fr", "-o", "out.en")
        self.assertEqual((self.folder / "out.en").read_text().count("\n"), 60)
        data = str(ROOT / "data/everyday/natural-test.tsv")
        scores = [self.launch("-n", n, "evaluate", "whole", "--data", data, "--again")[0].split("\n") for n in ("1", "2")]
        self.assertEqual(scores[0][:5], scores[1][:5])

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


if __name__ == "__main__":
    unittest.main()
