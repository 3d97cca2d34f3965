import type { A } from "./a";

export interface Props {
  a: string;
  b?: number;
}

export type Kind = "a" | "b" | "c";

export function f(a: string): void;
export function f(a: number): void;
export function f(a: unknown): void {
  console.log(a);
}

@Injectable()
export class Service<T> {
  @Input() name: string = "x";

  constructor(private readonly a: A) {}

  @Log()
  async run(): Promise<void> {
    return;
  }
}

export default function main(): number {
  return 1;
}

namespace N {
  export const x = 2;
}

export enum Color {
  Red,
  Blue,
}
