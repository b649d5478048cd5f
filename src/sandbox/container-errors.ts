// What docker and podman say when they cannot, in words that lead further.
import { UserError } from "../kit/errors.ts";

const DAEMON =
  /cannot connect to the docker daemon|is the docker daemon running|error during connect|cannot connect to podman|dial unix/i;
const NO_RIGHT = /permission denied.*(docker\.sock|podman\.sock|daemon socket)|daemon socket.*permission denied/is;
const IMAGE =
  /no such image|unable to find image|pull access denied|manifest unknown|repository .*(does not exist|not found)|initializing source|reading manifest|short-name|image not known|error pulling/i;
const INIT = /catatonit|container-init binary|docker-init/i;

export const noContainerProgram = () =>
  new UserError(
    "terminal.backend is docker, but neither docker nor podman is on PATH. Install one (https://docs.docker.com/engine/install, or: " +
      "apt install podman), name its path in HERMES_DOCKER_BINARY, or set another place: hermes config set terminal.backend local",
  );

export function containerError(binary: string, image: string, errors: string): UserError {
  const said = lastLines(errors);
  if (NO_RIGHT.test(errors)) {
    return new UserError(
      `${binary} may not talk to its daemon: ${said}. Add yourself to the docker group (sudo usermod -aG docker $USER, then log in ` +
        "again), or use podman: HERMES_DOCKER_BINARY=podman",
    );
  }
  if (DAEMON.test(errors)) {
    return new UserError(
      `The daemon of ${binary} does not answer: ${said}. Start it (sudo systemctl start docker, or open Docker Desktop), use podman, ` +
        "which needs none (HERMES_DOCKER_BINARY=podman), or set another place: hermes config set terminal.backend local",
    );
  }
  if (IMAGE.test(errors)) {
    return new UserError(
      `The image ${image} is not there and could not be fetched: ${said}. Fetch it (${binary} pull ${image}), or name another: ` +
        "hermes config set terminal.docker_image NAME",
    );
  }
  if (INIT.test(errors)) {
    return new UserError(
      `${binary} has no init program for containers: ${said}. Install it: apt install catatonit (podman) or tini (docker)`,
    );
  }
  return new UserError(`${binary} could not start a container of ${image}: ${said || "it said nothing"}`);
}

function lastLines(errors: string): string {
  return errors
    .trim()
    .split("\n")
    .filter((line) => !/^See '.* --help'\.?$|^Run '.*' for more information$/.test(line))
    .slice(-3)
    .join(" ")
    .replace(/\.$/, "");
}
