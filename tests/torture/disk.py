"""A disk in memory that replays the operations recorded by faults.c and says what a crash could leave of them."""

import pathlib
import posixpath


class File:
    def __init__(self, content=b"", synced=b""):
        self.content, self.synced = content, synced

    def write(self, offset, data):
        before = self.content[:offset].ljust(offset, b"\0")
        self.content = before + data + self.content[offset + len(data) :]


class Folder:
    def __init__(self):
        self.entries, self.synced = {}, {}


CRASHES = {
    "killed": "the process is killed: every operation counts",
    "data late": "power fails: file content that was not fsynced is lost, names are not",
    "names late": "power fails: renames, links and deletions in folders that were not fsynced are lost",
    "mixed": "power fails: any of what was not fsynced is lost",
}


class Disk:
    """Names below `root`. Files from outside come in by hard links."""

    def __init__(self, root):
        self.root, self.top = str(root), Folder()

    def find(self, path):
        node = self.top
        for part in filter(None, posixpath.relpath(path, self.root).split("/")):
            node = node.entries[part] if part != "." else node
        return node

    def parent(self, path):
        return self.find(posixpath.dirname(path)), posixpath.basename(path)

    def apply(self, kind, number, a, b, data):
        getattr(self, "do_" + kind)(number, a, b, data)

    def do_open(self, truncates, path, _, __):
        folder, name = self.parent(path)
        if name not in folder.entries:
            folder.entries[name] = File()
        elif truncates:
            folder.entries[name].content = b""

    def do_write(self, offset, path, _, data):
        self.find(path).write(offset, data)

    def do_truncate(self, size, path, _, __):
        file = self.find(path)
        file.content = file.content[:size].ljust(size, b"\0")

    def do_fsync(self, _, path, __, ___):
        file = self.find(path)
        file.synced = file.content

    def do_syncdir(self, _, path, __, ___):
        folder = self.find(path)
        folder.synced = dict(folder.entries)

    def do_mkdir(self, _, path, __, ___):
        folder, name = self.parent(path)
        folder.entries[name] = folder.synced[name] = Folder()  # a journal keeps a new folder before what is put into it

    def do_rename(self, flags, a, b, _):
        source, old = self.parent(a)
        target, new = self.parent(b)
        if flags & 2:  # RENAME_EXCHANGE
            source.entries[old], target.entries[new] = target.entries[new], source.entries[old]
        else:
            target.entries[new] = source.entries.pop(old)

    def do_link(self, _, a, b, __):
        folder, name = self.parent(b)
        if a.startswith(self.root + "/"):
            folder.entries[name] = self.find(a)
        else:
            content = pathlib.Path(a).read_bytes()
            folder.entries[name] = File(content, content)

    def do_delete(self, _, path, __, ___):
        folder, name = self.parent(path)
        del folder.entries[name]

    def after(self, crash, random):
        """Path -> content of what a crash leaves; folders that are empty -> None."""
        left = {}
        self.collect(self.top, "", crash, random, left, {})
        return left

    def collect(self, folder, path, crash, random, left, chosen):
        names = folder.synced if crash == "names late" else folder.entries
        if crash == "mixed":
            names = {}
            for name in sorted(folder.entries.keys() | folder.synced.keys()):
                node = random.choice([folder.entries, folder.synced]).get(name)
                if node is not None:
                    names[name] = node
        for name in sorted(names):
            node, below = names[name], f"{path}/{name}" if path else name
            if isinstance(node, Folder):
                left[below] = None
                self.collect(node, below, crash, random, left, chosen)
            else:
                if id(node) not in chosen:  # a file with several names has one content
                    chosen[id(node)] = self.content(node, crash, random)
                left[below] = chosen[id(node)]

    @staticmethod
    def content(file, crash, random):
        whole = file.content
        if crash == "killed":
            return whole
        if crash == "mixed" and whole != file.synced:
            kept = len(file.synced) if whole.startswith(file.synced) else 0  # what was fsynced before an append is not lost
            return random.choice([whole, file.synced, whole[:random.randrange(kept, len(whole) + 1)]])
        return file.synced
